"""Shares of a fixed time: a part that needs less leaves the rest to those after it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

RESERVE_S = 10.0  # for counting and writing, after the last run


@dataclass(slots=True)
class Clock:
    """A time limit, counted from its making."""

    limit_s: float
    now: Callable[[], float] = time.monotonic
    _start: float = field(init=False)

    def __post_init__(self) -> None:
        self._start = self.now()

    @property
    def spent_s(self) -> float:
        """Since the start."""
        return self.now() - self._start

    @property
    def left_s(self) -> float:
        """Until the limit, less what the report needs."""
        return max(self.limit_s - RESERVE_S - self.spent_s, 0.0)

    def share(self, part: float, of: float) -> Share:
        """`part` of the time that is left, out of `of` for all parts still to come."""
        return Share(self, self.spent_s + self.left_s * part / of)


@dataclass(frozen=True, slots=True)
class Share:
    """One part's time."""

    clock: Clock
    until_s: float

    @property
    def left_s(self) -> float:
        """Until this part's end."""
        return max(self.until_s - self.clock.spent_s, 0.0)

    def fits(self, expected_s: float) -> bool:
        """Is there time for a run of that length?"""
        return self.left_s >= expected_s
