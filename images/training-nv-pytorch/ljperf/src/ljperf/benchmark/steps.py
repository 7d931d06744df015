"""Timing of steps: warm-up apart, the device synchronised at both ends, and stopping at a loss that is no number."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ljperf.errors import LjperfError

TRACED_STEPS = 2  # one may hold what happens only now and then; more makes a file that browsers refuse


class NotFiniteLossError(LjperfError):
    """The loss became NaN or infinite."""


class Tracer(Protocol):
    """Something to switch on after the measured steps."""

    def start(self) -> None:
        """Begin to record."""

    def stop(self) -> None:
        """Keep what was recorded."""


@dataclass(slots=True)
class Meter:
    """Times one step after the other, whoever runs the loop: ours, or the Trainer's."""

    warmup: int
    steps: int
    synchronise: Callable[[], None] = lambda: None
    clock: Callable[[], float] = time.perf_counter
    tracer: Tracer | None = None
    after: Callable[[Meter], None] = lambda _: None
    """Called after each step, outside of the time."""
    losses: list[float] = field(default_factory=list)
    """Of all steps, warm-up included."""
    seconds: list[float] = field(default_factory=list)
    """Of the measured steps alone."""
    done: int = 0
    _began: float = 0.0

    @property
    def total(self) -> int:
        """All steps that the loop must run."""
        return self.warmup + self.steps + (TRACED_STEPS if self.tracer else 0)

    @property
    def measured(self) -> bool:
        """Are all the steps measured that were asked for?"""
        return len(self.seconds) >= self.steps

    def begin(self) -> None:
        """A step starts."""
        if self.tracer and self.done == self.warmup + self.steps:
            self.tracer.start()
        self.synchronise()
        self._began = self.clock()

    def end(self, loss: float) -> None:
        """The step has ended with that loss. Raises NotFiniteLossError."""
        self.synchronise()
        seconds = self.clock() - self._began
        self.done += 1
        if self.warmup < self.done <= self.warmup + self.steps:
            self.seconds.append(seconds)
        self.losses.append(loss)
        if self.tracer and self.done == self.total:
            self.tracer.stop()
        self.after(self)
        if not math.isfinite(loss):
            when = "warm-up" if self.done <= self.warmup else "measured"
            hint = "a smaller --learning-rate, --precision bf16 or fp32, or other tokens"
            raise NotFiniteLossError(f"the loss is {loss} at step {self.done} ({when})", hint=hint)


def percentile(values: Sequence[float], percent: float) -> float:
    """Nearest rank: the smallest value that at least so many percent do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]


def summary(seconds: Sequence[float]) -> dict[str, object]:
    """Median, p95 and the rest of step times; every value None without one."""
    if not seconds:
        return dict.fromkeys(("median", "p95", "mean", "min", "max"), None) | {"all": []}
    return {
        "median": statistics.median(seconds),
        "p95": percentile(seconds, 95),
        "mean": statistics.fmean(seconds),
        "min": min(seconds),
        "max": max(seconds),
        "all": list(seconds),
    }
