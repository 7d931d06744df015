"""What was promised, what was found, and whether that is enough. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ljperf.gpu.trials import Ended

MEDIAN_ERROR: Final = 0.03
LARGEST_ERROR: Final = 0.08
CONFIGURATIONS: Final = 12
GAIN: Final = 0.20


@dataclass(frozen=True, slots=True)
class Verdict:
    """One promise. `met` is None where this run cannot tell."""

    promise: str
    found: str
    met: bool | None


@dataclass(frozen=True, slots=True)
class Error:
    """Predicted against measured."""

    name: str
    predicted_bytes: int
    measured_bytes: int

    @property
    def relative(self) -> float:
        """Positive: more was predicted than was taken."""
        return (self.predicted_bytes - self.measured_bytes) / self.measured_bytes


def verdicts(errors: Sequence[Error], grid: Sequence[Ended], gains: Mapping[str, Ended]) -> tuple[Verdict, ...]:
    """All promises."""
    return (
        *_accuracy(errors),
        _recommended([*grid, *gains.values()]),
        _gain("recompute: tokens/s over full recomputation, same memory limit", gains, _pairs_of(gains, "auto")),
        _gain("compile: tokens/s over the same without", gains, _pairs_of(gains, "compiled")),
    )


def _accuracy(errors: Sequence[Error]) -> tuple[Verdict, ...]:
    sizes = [abs(error.relative) for error in errors]
    count = f"planner: at least {CONFIGURATIONS} configurations measured"
    median = f"planner: median error at most {MEDIAN_ERROR:.0%}"
    largest = f"planner: largest error at most {LARGEST_ERROR:.0%}"
    if not sizes:
        return tuple(Verdict(promise, "no device memory was measured", None) for promise in (count, median, largest))
    middle, most = statistics.median(sizes), max(errors, key=lambda error: abs(error.relative))
    return (
        Verdict(count, str(len(sizes)), len(sizes) >= CONFIGURATIONS),
        Verdict(median, f"{middle:.1%}", middle <= MEDIAN_ERROR),
        Verdict(largest, f"{most.relative:+.1%} ({most.name})", abs(most.relative) <= LARGEST_ERROR),
    )


def _recommended(trials: Sequence[Ended]) -> Verdict:
    promise = "planner: no recommended configuration runs out of memory"
    tried = [one for one in trials if one.trial.recommended and not (one.failure or "").startswith("left out")]
    if not tried:
        return Verdict(promise, "none was tried", None)
    bad = [one for one in tried if one.result is None or one.retries]
    names = ", ".join(f"{one.trial.name} ({one.failure or f'{one.retries} allocator retries'})" for one in bad)
    return Verdict(promise, f"{len(tried)} tried; {f'failed: {names}' if bad else 'all fit'}", not bad)


def _pairs_of(gains: Mapping[str, Ended], ending: str) -> list[tuple[str, str]]:
    names = [name for name in gains if name.endswith(f"-{ending}")]
    return [(f"{name.rsplit('-', 1)[0]}-full", name) for name in names]


def _gain(promise: str, gains: Mapping[str, Ended], pairs: Sequence[tuple[str, str]]) -> Verdict:
    """Met if any pair shows it: a model without room to choose cannot; each pair's gain is said."""
    found = {after: gain for before, after in pairs if (gain := gain_between(gains.get(before), gains.get(after)))}
    whole = f"{promise}, at least {GAIN:.0%}"
    if not found:
        return Verdict(whole, "no pair was measured", None)
    said = "; ".join(f"{name} {gain - 1:+.1%}" for name, gain in found.items())
    # A CPU says nothing about a GPU's gain.
    on_gpu = any(gains[name].allocated for name in found)
    return Verdict(whole, said, max(found.values()) >= 1 + GAIN if on_gpu else None)


def gain_between(before: Ended | None, after: Ended | None) -> float | None:
    """How many times as fast; None if one of both has no speed."""
    if before is None or after is None or not before.speed or not after.speed:
        return None
    return after.speed / before.speed
