"""Who goes in step with the others, and how long those wait for one who is slower.

The wait for one counts once, however many wait for it. It may become a small part of the time that has passed; one
that has taken far less than the others is given little of that, since it would only go on so.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Final

_AT_ONCE_S: Final = 0.1
"""A wait that is no more than a scheduler's mood."""
_GRACE_S: Final = 0.4
_SHARE: Final = 0.05
"""Of the time that passed: more delay than that is not what the others are to bear."""


class Member:
    """One who takes blocks, in step or by itself."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_in_step = True
        """Never true again once it is false: it delays the others once, and not with each blob."""
        self.taken_bytes = 0
        self.waited_s = 0.0
        """How long others waited for it."""
        self.waited_until = 0.0


class Pace:
    """The waiting of all members for each other; threads may share it."""

    def __init__(self, leaves: Callable[[Member], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._leaves, self._clock = leaves, clock
        self._began = clock()
        self._lock = threading.Lock()

    def now(self) -> float:
        """Return the time in seconds, since whenever."""
        return self._clock()

    def took(self, member: Member, size_bytes: int) -> None:
        """Count what a member has taken."""
        with self._lock:
            member.taken_bytes += size_bytes

    def waited(self, holders: Iterable[Member], since: float, taken_bytes: int) -> None:
        """Charge the time from `since` to now to those who were waited for; whoever makes it too long leaves.

        `taken_bytes` is what the one that waited has taken.
        """
        now = self._clock()
        for holder in holders:
            with self._lock:
                holder.waited_s += max(0.0, now - max(since, holder.waited_until))
                holder.waited_until = max(now, holder.waited_until)
                is_leaving = holder.is_in_step and holder.waited_s > self._bearable_s(holder, taken_bytes, now)
                holder.is_in_step = holder.is_in_step and not is_leaving
            if is_leaving:
                self._leaves(holder)

    def _bearable_s(self, holder: Member, taken_bytes: int, now: float) -> float:
        likeness = min(1.0, holder.taken_bytes / taken_bytes) if taken_bytes else 1.0
        return _AT_ONCE_S + likeness * (_GRACE_S + _SHARE * (now - self._began))
