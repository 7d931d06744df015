"""From runs to what each step contributes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ljperf.ablation.runs import Run
from ljperf.ablation.statistics import Estimate, gain_of, mean_of
from ljperf.ablation.steps import LeftOut, Step


@dataclass(frozen=True, slots=True)
class Contribution:
    """One step: how fast with it, and what it adds to the step before and to the base, as parts (0.2: a fifth)."""

    step: Step
    runs: int
    speed: Estimate | None
    """Tokens per second in all; None if no run ended well."""
    gain: Estimate | None
    """Over the nearest earlier step that was measured in a common round; None for the first."""
    over: str | None
    """That step's name."""
    total: Estimate | None
    """Over the first step."""
    failures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ablation:
    """All of it: what the table, the JSON and the plot show."""

    model: str
    repeats: int
    confidence: float
    contributions: tuple[Contribution, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def complete(self) -> bool:
        """Did every run of every step end well?"""
        return all(part.runs == self.repeats for part in self.contributions)


def contributions(steps: Sequence[Step], runs: Sequence[Run], confidence: float = 0.95) -> tuple[Contribution, ...]:
    """Each step against the one before it, paired by round."""
    found: list[Contribution] = []
    for index, step in enumerate(steps):
        speeds = speeds_of(step.name, runs)
        earlier = [other.name for other in steps[:index]]
        gain, over = _nearest(speeds, earlier, runs, confidence)
        total = _gain(earlier[0], speeds, runs, confidence) if earlier else None
        mean = mean_of(list(speeds.values()), confidence) if speeds else None
        failures = tuple(run.failure for run in runs if run.step == step.name and run.failure)
        found.append(Contribution(step, len(speeds), mean, gain, over, total, failures))
    return tuple(found)


def speeds_of(step: str, runs: Sequence[Run]) -> dict[int, float]:
    """Round -> tokens per second, of the runs that ended well."""
    return {run.round: run.speed for run in runs if run.step == step and run.speed is not None}


def _nearest(
    speeds: dict[int, float], earlier: list[str], runs: Sequence[Run], confidence: float
) -> tuple[Estimate | None, str | None]:
    for name in reversed(earlier):
        gain = _gain(name, speeds, runs, confidence)
        if gain:
            return gain, name
    return None, None


def _gain(before: str, speeds: dict[int, float], runs: Sequence[Run], confidence: float) -> Estimate | None:
    old = speeds_of(before, runs)
    rounds = sorted(old.keys() & speeds.keys())
    return gain_of([old[turn] for turn in rounds], [speeds[turn] for turn in rounds], confidence) if rounds else None


def document_of(ablation: Ablation, runs: Sequence[Run]) -> dict[str, Any]:
    """The JSON: every number of the table, and every run's own result, so that a reader can count again."""
    return {
        "kind": "ablation",
        "complete": ablation.complete,
        "model": ablation.model,
        "repeats": ablation.repeats,
        "confidence": ablation.confidence,
        "steps": [_step(part) for part in ablation.contributions],
        "left_out": [{"step": one.name, "why": one.why} for one in ablation.left_out],
        "runs": [
            {"step": run.step, "round": run.round + 1, "failure": run.failure, "result": run.result} for run in runs
        ],
    }


def _step(part: Contribution) -> dict[str, Any]:
    return {
        "step": part.step.name,
        "title": part.step.title,
        "image": part.step.image,
        "environment": dict(part.step.environment),
        "options": list(part.step.options),
        "runs": part.runs,
        "tokens_per_second": _bounds(part.speed),
        "over": part.over,
        "gain": _bounds(part.gain),
        "total_gain": _bounds(part.total),
        "failures": list(part.failures),
    }


def _bounds(estimate: Estimate | None) -> dict[str, float | None] | None:
    return None if estimate is None else {"value": estimate.value, "low": estimate.low, "high": estimate.high}
