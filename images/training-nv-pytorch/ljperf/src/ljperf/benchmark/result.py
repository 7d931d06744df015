"""What is kept of a run: one JSON document, also of a run that ended early.

Keys that others read: `complete`, `ended`, `tokens_per_second`, `tokens_per_second_per_device`, `step_seconds` (median,
p95, mean, min, max, all), `mfu`, `hfu` (None without a known peak), `memory` (bytes, the most of all ranks: allocated,
reserved, host), `loss` (first, last, all), `compile` (graphs, breaks, reasons), `setup` (every field of TrainingSetup),
`versions`, `seed`.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ljperf.benchmark.request import Request
from ljperf.benchmark.steps import summary
from ljperf.errors import UsageError
from ljperf.models.flops import flops_per_token, hardware_flops_per_token
from ljperf.models.shape import ModelShape
from ljperf.setup import TrainingSetup

Ended = Literal["well", "interrupted", "diverged", "failed"]

FORMAT = 1
CONVENTION = "6 per parameter and token without the input embedding, attention without causal halving"


@dataclass(frozen=True, slots=True)
class Measured:
    """What one rank saw."""

    seconds: tuple[float, ...]
    losses: tuple[float, ...]
    memory: Mapping[str, int | None]
    compile: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Machine:
    """What it ran on: the device type, its own name, its peak FLOP/s at the run's precision (None: unknown)."""

    kind: str
    name: str
    peak_flops: float | None
    versions: Mapping[str, str]


def merged(ranks: Sequence[Measured]) -> Measured:
    """The slowest rank of each step, the mean loss, the largest memory, the most graphs."""
    seconds = tuple(max(step) for step in zip(*(rank.seconds for rank in ranks), strict=True))
    losses = tuple(sum(step) / len(step) for step in zip(*(rank.losses for rank in ranks), strict=True))
    keys = ranks[0].memory
    memory = {key: _largest([rank.memory[key] for rank in ranks]) for key in keys}
    worst = max(ranks, key=lambda rank: (rank.compile["breaks"], rank.compile["graphs"]))
    return Measured(seconds, losses, memory, worst.compile)


def _largest(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return max(known) if known else None


def document(
    request: Request,
    shape: ModelShape,
    setup: TrainingSetup,
    machine: Machine,
    measured: Measured,
    *,
    ended: Ended = "well",
    failure: str | None = None,
    notes: Sequence[str] = (),
) -> dict[str, Any]:
    """Everything about a run, ready for JSON; speeds are None where no step was measured."""
    speed = _speed(setup, measured.seconds)
    per_device = speed / setup.world_size if speed is not None else None
    flops = flops_per_token(shape, setup.sequence)
    hardware = hardware_flops_per_token(shape, setup.sequence, setup.recompute_layers)
    return {
        "format": FORMAT,
        "complete": ended == "well",
        "ended": ended,
        "failure": failure,
        "model": shape.name,
        "framework": setup.framework,
        "tokens_per_second": speed,
        "tokens_per_second_per_device": per_device,
        "step_seconds": summary(measured.seconds),
        "mfu": _utilisation(per_device, flops, machine.peak_flops),
        "hfu": _utilisation(per_device, hardware, machine.peak_flops),
        "flops": {"model_per_token": flops, "hardware_per_token": hardware, "convention": CONVENTION},
        "memory": dict(measured.memory),
        "loss": _losses(measured.losses, request.warmup),
        "compile": dict(measured.compile),
        "device": {"kind": machine.kind, "name": machine.name, "peak_flops": machine.peak_flops},
        "seed": request.seed,
        "warmup": request.warmup,
        "steps": request.steps,
        "recompute": request.recompute,
        "backend": request.backend if setup.compiled else None,
        "tokens": str(request.tokens) if request.tokens else "synthetic",
        "setup": dataclasses.asdict(setup),
        "versions": dict(machine.versions),
        "notes": list(notes),
    }


def _speed(setup: TrainingSetup, seconds: Sequence[float]) -> float | None:
    if not seconds:
        return None
    return setup.tokens * setup.accumulation * setup.world_size * len(seconds) / sum(seconds)


def _utilisation(per_device: float | None, flops: float, peak: float | None) -> float | None:
    return None if per_device is None or not peak else per_device * flops / peak


def _losses(losses: Sequence[float], warmup: int) -> dict[str, Any]:
    shown = [repr(value) if value != value or abs(value) == float("inf") else value for value in losses]
    return {"first": shown[0] if shown else None, "last": shown[-1] if shown else None, "all": shown, "warmup": warmup}


def text_of(result: Mapping[str, Any]) -> str:
    """As JSON, strictly: a reader in another language finds no NaN."""
    return json.dumps(result, indent=2, allow_nan=False) + "\n"


def read(path: Path) -> dict[str, Any]:
    """A kept result. Raises UsageError if it is none of ours."""
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"no result: {error}", location=str(path)) from None
    if not isinstance(result, dict) or result.get("format") != FORMAT or "tokens_per_second" not in result:
        hint = "give files that `ljperf benchmark --json` wrote"
        raise UsageError("this is no result of `ljperf benchmark`", hint=hint, location=str(path))
    return result
