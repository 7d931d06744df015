"""Means with confidence intervals, for the few repeats that anybody has time for: Student's t, without scipy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and its interval; without bounds where fewer than two repeats leave nothing to judge by."""

    value: float
    low: float | None = None
    high: float | None = None

    def excludes(self, point: float) -> bool:
        """Is the point outside of the interval? Never so without one."""
        return self.low is not None and self.high is not None and not self.low <= point <= self.high


def mean_of(values: Sequence[float], confidence: float = 0.95) -> Estimate:
    """The mean of independent repeats, with its two-sided t interval."""
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return Estimate(mean)
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    half = t_quantile(0.5 + confidence / 2, len(values) - 1) * math.sqrt(variance / len(values))
    return Estimate(mean, mean - half, mean + half)


def gain_of(before: Sequence[float], after: Sequence[float], confidence: float = 0.95) -> Estimate:
    """How much faster `after` is, as a part of `before` (0.2: a fifth faster), from speeds paired by round.

    Neighbours in a round share the machine's mood (clocks, temperature, neighbours), so each round gives one ratio;
    logarithms make a gain and the loss that undoes it equally large.
    """
    logs = [math.log(new / old) for old, new in zip(before, after, strict=True)]
    log = mean_of(logs, confidence)
    if log.low is None or log.high is None:
        return Estimate(math.expm1(log.value))
    return Estimate(math.expm1(log.value), math.expm1(log.low), math.expm1(log.high))


def t_quantile(probability: float, degrees: int) -> float:
    """The value that Student's t with so many degrees of freedom stays below with that probability (0.5 to 1)."""
    if not 0.5 <= probability < 1:
        raise ValueError(f"a probability from 0.5 up to 1 is needed, not {probability}")
    low, high = 0.0, 1.0
    while t_cdf(high, degrees) < probability:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if t_cdf(middle, degrees) < probability else (low, middle)
    return (low + high) / 2


def t_cdf(t: float, degrees: int) -> float:
    """The probability that Student's t is below `t`. Finite series: Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    angle = math.atan2(t, math.sqrt(degrees))
    return 0.5 + (_odd(angle, degrees) if degrees % 2 else _even(angle, degrees)) / 2


def _odd(angle: float, degrees: int) -> float:
    term, total = math.cos(angle), 0.0
    for index in range(1, degrees - 1, 2):
        total += term
        term *= math.cos(angle) ** 2 * (index + 1) / (index + 2)
    return 2 / math.pi * (angle + math.sin(angle) * total)


def _even(angle: float, degrees: int) -> float:
    term, total = 1.0, 0.0
    for index in range(0, degrees, 2):
        total += term
        term *= math.cos(angle) ** 2 * (index + 1) / (index + 2)
    return math.sin(angle) * total
