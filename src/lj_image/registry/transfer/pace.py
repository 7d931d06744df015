"""Who goes in step with the others, and how long one may keep them waiting, or wait for them.

Members that are alike keep each other waiting now and then, each as much as another; that is no reason to part. So
what counts is by how much one is waited for more than the others are, and that may become no more than a small part of
the time that has passed, and what chance makes of it. One that has taken far less than the others is given little of
it: it would only go on so. One that stands still while all others wait is given a moment.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection, Iterable
from typing import Final

_AT_ONCE_S: Final = 0.2
"""A wait that is no more than a machine's mood."""
_GRACE_S: Final = 0.3
_SHARE: Final = 0.05
"""Of the time that passed: more delay than that is not what the others are to bear."""
_CHANCE: Final = 0.3
"""Of the square root of the time, as chance grows: six registries on two busy processors mostly stay together by it."""
_STANDSTILL_S: Final = 1.0
_AHEAD: Final = 3
"""So many times longer may one wait before it goes ahead: most often it is better that the slower one leaves."""


class Waiting:
    """The time in seconds of waits that may overlap."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._until = 0.0

    def add(self, since: float, now: float, weight: float = 1.0) -> None:
        """Count what is not yet counted of a wait."""
        self.seconds += weight * max(0.0, now - max(since, self._until))
        self._until = max(now, self._until)


class Member:
    """One who takes blocks, in step or by itself."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_in_step = True
        """Never true again once it is false: it delays the others once, and not with each blob."""
        self.taken_bytes = 0
        self.taken_at = 0.0
        """When it last took something."""
        self.waited_for = Waiting()
        self.waits = Waiting()


class Pace:
    """The waiting of members for each other; threads may share it."""

    def __init__(
        self,
        members: Iterable[Member],
        leaves: Callable[[Member], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`leaves` is told who goes by itself from now on, by any thread."""
        self._members, self._leaves, self._clock = tuple(members), leaves, clock
        self._began = clock()
        self._lock = threading.Lock()

    def now(self) -> float:
        """Return the time in seconds, since whenever."""
        return self._clock()

    def took(self, member: Member, size_bytes: int) -> None:
        """Count what a member has taken."""
        with self._lock:
            member.taken_bytes += size_bytes
            member.taken_at = self._clock()

    def waited(self, holders: Collection[Member], waiting: Collection[Member], of: int, since: float) -> None:
        """Count that some members waited for others from `since` to now; whoever makes that too long leaves.

        `of` is how many could have waited: the more of them do, the surer is the holder what slows all down.
        """
        now = self._clock()
        with self._lock:
            for holder in holders:
                holder.waited_for.add(since, now, min(1.0, len(waiting) / max(1, of)))
            for member in waiting:
                member.waits.add(since, now)
            is_all_waiting = len(waiting) >= of
            leaving = [
                member
                for member in holders
                if self._is_too_slow(member, waiting, now) or (is_all_waiting and self._stands_still(member, now))
            ]
            leaving = leaving or [member for member in waiting if self._is_too_fast(member, now)]
            for member in leaving:
                member.is_in_step = False
        for member in leaving:
            self._leaves(member)

    def _is_too_slow(self, member: Member, waiting: Collection[Member], now: float) -> bool:
        most = max((other.taken_bytes for other in waiting), default=0)
        likeness = min(1.0, member.taken_bytes / most) if most else 1.0
        others = [other.waited_for.seconds for other in self._others(member)]
        bearable_s = _AT_ONCE_S + likeness**2 * self._grace_s(now)
        return member.is_in_step and bool(others) and _stands_out(member.waited_for, others, bearable_s)

    def _is_too_fast(self, member: Member, now: float) -> bool:
        others = [other.waits.seconds for other in self._others(member)]
        bearable_s = _AHEAD * (_AT_ONCE_S + self._grace_s(now))
        return member.is_in_step and bool(others) and _stands_out(member.waits, others, bearable_s)

    def _stands_still(self, member: Member, now: float) -> bool:
        passed_s = now - self._began
        return member.is_in_step and now - max(member.taken_at, self._began) > _STANDSTILL_S + passed_s * _SHARE / 2

    def _grace_s(self, now: float) -> float:
        passed_s = now - self._began
        return _GRACE_S + _SHARE * passed_s + _CHANCE * math.sqrt(passed_s)

    def _others(self, member: Member) -> list[Member]:
        return [other for other in self._members if other.is_in_step and other is not member]


def _stands_out(own: Waiting, others: list[float], bearable_s: float) -> bool:
    """Say whether a time is so far from those of the others that chance is no reason for it."""
    mean = sum(others) / len(others)
    return own.seconds - mean > bearable_s and own.seconds > 2 * mean
