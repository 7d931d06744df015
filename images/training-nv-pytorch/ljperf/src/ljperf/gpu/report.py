"""Results as JSON, and as Markdown for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ljperf.gpu.machine import Machine
from ljperf.gpu.trials import Ended
from ljperf.gpu.verdicts import Error, Verdict


@dataclass(frozen=True, slots=True)
class Findings:
    """All that was found so far; a part that has not run is empty."""

    machine: Machine
    limit_s: float
    spent_s: float
    grid: tuple[Ended, ...]
    errors: tuple[Error, ...]
    gains: tuple[Ended, ...]
    ablation: dict[str, Any] | None
    ablation_text: str
    verdicts: tuple[Verdict, ...]
    left_out: tuple[str, ...] = ()
    calibration: str = ""
    """What `ljperf calibrate` said."""

    @property
    def whole(self) -> bool:
        """Did all run that was meant to?"""
        trials = all(one.result for one in (*self.grid, *self.gains))
        return trials and not self.left_out and bool(self.ablation and self.ablation["complete"])


def document_of(found: Findings) -> dict[str, Any]:
    """For `results.json`."""
    return {
        "kind": "gpu",
        "complete": found.whole,
        "machine": found.machine.document(),
        "seconds": {"limit": found.limit_s, "spent": round(found.spent_s, 1)},
        "verdicts": [asdict(verdict) for verdict in found.verdicts],
        "planner": [{**asdict(error), "error": error.relative} for error in found.errors],
        "grid": [_trial(one) for one in found.grid],
        "gains": [_trial(one) for one in found.gains],
        "ablation": found.ablation,
        "calibration": found.calibration,
        "left_out": list(found.left_out),
    }


def _trial(one: Ended) -> dict[str, Any]:
    return {
        "name": one.trial.name,
        "model": one.trial.model,
        "options": list(one.trial.options),
        "recommended": one.trial.recommended,
        "seconds": round(one.wall_s, 1),
        "failure": one.failure,
        "result": one.result,
    }


def markdown_of(found: Findings) -> str:
    """For `results.md`."""
    parts = [
        f"# Measured on {found.machine.device}, {found.machine.date}\n",
        "\n".join(_machine(found.machine)),
        f"\n{found.spent_s:.0f} s of {found.limit_s:.0f} s. {_state(found)}\n",
        "## Promises\n",
        grid_of(("promise", "found", "met"), (_verdict(verdict) for verdict in found.verdicts)),
        "\n## Peak memory: predicted against measured\n",
        grid_of(("configuration", "predicted GB", "measured GB", "error"), map(_error, found.errors)),
        "\n## Runs\n",
        grid_of(("run", "tokens/s", "peak GB", "reserved GB", "seconds"), map(_run, (*found.grid, *found.gains))),
        "\n## Ablation\n",
        f"```\n{found.ablation_text or 'not run'}\n```\n",
        "## Calibration\n",
        f"```\n{found.calibration or 'not run'}\n```\n",
        *(f"- {line}\n" for line in found.left_out),
    ]
    return "\n".join(parts)


def _machine(machine: Machine) -> Iterable[str]:
    memory = f", {machine.memory_bytes / 2**30:.1f} GiB" if machine.memory_bytes else ""
    yield f"- device: {machine.device}{memory}"
    if machine.driver or machine.cuda:
        yield f"- driver {machine.driver or 'unknown'}, CUDA {machine.cuda or 'unknown'}"
    yield f"- processor: {machine.processor}, {machine.cores} cores; {machine.kernel}"
    yield "- " + ", ".join(f"{name} {version}" for name, version in machine.versions.items())


def _state(found: Findings) -> str:
    return "All that was meant to run has run." if found.whole else "Not all has run: see below."


def _verdict(verdict: Verdict) -> tuple[str, str, str]:
    return verdict.promise, verdict.found, {True: "yes", False: "no", None: "cannot tell"}[verdict.met]


def _error(error: Error) -> tuple[str, str, str, str]:
    sizes = f"{error.predicted_bytes / 1e9:.2f}", f"{error.measured_bytes / 1e9:.2f}"
    return error.name, *sizes, f"{error.relative:+.1%}"


def _run(one: Ended) -> tuple[str, str, str, str, str]:
    if one.result is None:
        return one.trial.name, one.failure or "failed", "", "", f"{one.wall_s:.0f}"
    memory = one.result["memory"]
    sizes = [f"{memory[key] / 1e9:.2f}" if memory.get(key) else "" for key in ("allocated", "reserved")]
    return one.trial.name, f"{one.speed or 0:,.0f}", sizes[0], sizes[1], f"{one.wall_s:.0f}"


def grid_of(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; a pipe in a cell does not end it."""
    lines = [headers, ["---"] * len(headers), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"
