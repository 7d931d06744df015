"""One blob's blocks, read once and in order by whoever needs the next one first, for all who go in step.

Blocks are kept in a bounded window. Who is ahead waits while it is full of what another has yet to take; who is behind
the window, or out of step, is told to read by itself. The last block is given out only when the digest is right, so
that nobody is ever sent all of a wrong blob.
"""

from __future__ import annotations

import hashlib
import threading
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, Literal

from lj_image.oci.source import Stream
from lj_image.registry.transfer.pace import Member, Pace
from lj_image.registry.transfer.source import BLOCK_BYTES, Source

_LOOK_S: Final = 0.05
"""How often one that waits looks whether it has waited too long."""
_OTHERS_S: Final = 2.0
"""How long one out of step waits for the digest that the others are about to know."""


class Feed:
    """Gives blocks to members; threads share it."""

    def __init__(self, source: Source, members: Iterable[Member], pace: Pace, window_bytes: int) -> None:
        self._source, self._pace = source, pace
        self._most = max(1, window_bytes // BLOCK_BYTES)
        self._changed = threading.Condition()
        self._needs = dict.fromkeys(members, 0)
        """Which block each member needs next that goes along: those before the least are nobody's."""
        self._alone = next(iter(self._needs)) if len(self._needs) == 1 else None
        """Who has this feed for itself, and so is never out of step with anyone."""
        self._waiting: set[Member] = set()
        self._kept: deque[bytes] = deque()
        self._first = 0
        """The number of the first block that is kept; with none kept, of the next."""
        self._digest = None if source.is_verified else hashlib.sha256()
        self._stream: Stream | None = None
        self._is_reading = False
        self._failure: BaseException | None = None

    def take(self, member: Member, number: int) -> bytes | None:
        """Return a block; None where the member has to read it by itself.

        Raises ArtifactError for a blob that cannot be read or has other bytes than it should, and what `fail` was told.
        """
        while True:
            with self._changed:
                found = self._found(member, number)
            if found != "read":
                break
            self._read_next()
        if found is not None:
            self._pace.took(member, len(found))
        return found

    def leave(self, member: Member) -> None:
        """Wait for a member no more: it has all, or it will never have."""
        with self._changed:
            self._needs.pop(member, None)
            self._changed.notify_all()

    def assure(self) -> None:
        """Return when the blob is known to have its digest, for one who reads by itself; raises as `take`."""
        until = self._pace.now() + _OTHERS_S
        while not self._source.is_verified:
            with self._changed:
                is_mine = self._is_left_to_me(until)
            if is_mine:
                self._read_next()
            elif self._pace.now() >= until and not self._source.is_verified:
                self._source.verify()

    def fail(self, error: BaseException) -> None:
        """Let everyone who waits, or comes, raise an error."""
        with self._changed:
            self._failure = self._failure or error
            self._changed.notify_all()

    def forget(self) -> None:
        """Keep no blocks, once all that go along have taken the last; who takes some back reads by itself."""
        with self._changed:
            if not self._followed():
                self._first = self._next
                self._kept.clear()

    def close(self) -> None:
        """Let the file go, or the connection, when nobody takes any more."""
        if self._stream is not None:
            with suppress(OSError):
                self._stream.close()
            self._stream = None
        self._kept.clear()

    @property
    def _next(self) -> int:
        return self._first + len(self._kept)

    def _found(self, member: Member, number: int) -> bytes | Literal["read"] | None:
        """Return a kept block, None, or that this thread is to read the next one; wait until it is one of these."""
        while True:
            self._raise_failure()
            if self._first <= number < self._next:
                self._needed(member, number + 1)
                return self._kept[number - self._first]
            if not self._goes_along(member, number):
                self._needed(member, None)
                return None
            self._needed(member, number)
            if self._is_reading:
                self._changed.wait()
            elif self._has_room():
                self._is_reading = True
                return "read"
            else:
                self._wait_for_slowest(member)

    def _goes_along(self, member: Member, number: int) -> bool:
        """Say whether a member gets the block from here, and not from far before or far ahead of the others."""
        if not self._is_followed(member) or number < self._first:
            return False
        is_alone = all(other is member for other in self._followed())
        return is_alone or number < self._next + self._most

    def _needed(self, member: Member, number: int | None) -> None:
        if number is None or not self._is_followed(member):
            self._needs.pop(member, None)
        else:
            self._needs[member] = number
        self._changed.notify_all()

    def _is_followed(self, member: Member) -> bool:
        return member.is_in_step or member is self._alone

    def _followed(self) -> list[Member]:
        """Return those whose blocks are kept: they go along, and are not yet at the end."""
        last = self._source.last_block
        return [member for member, number in self._needs.items() if number <= last and self._is_followed(member)]

    def _least_needed(self) -> int:
        return min((self._needs[member] for member in self._followed()), default=self._next)

    def _has_room(self) -> bool:
        return len(self._kept) < self._most or self._least_needed() > self._first

    def _wait_for_slowest(self, member: Member) -> None:
        least, since, followed = self._least_needed(), self._pace.now(), self._followed()
        holders = [other for other in followed if self._needs[other] == least and other is not member]
        self._waiting.add(member)
        self._changed.wait(_LOOK_S)
        self._pace.waited(holders, tuple(self._waiting), len(followed) - len(holders), since)
        self._waiting.discard(member)

    def _is_left_to_me(self, until: float) -> bool:
        """Wait for a change; say whether nobody in step reads on, so that the next block is this thread's to read."""
        self._raise_failure()
        if not self._is_reading and not self._followed() and self._digest is not None:
            self._is_reading = self._next <= self._source.last_block
            return self._is_reading
        self._changed.wait(max(0.0, min(_LOOK_S, until - self._pace.now())))
        return False

    def _read_next(self) -> None:
        """Read a block, as the one thread that does; others may send it while it is digested."""
        try:
            number = self._next
            is_last = number == self._source.last_block
            block = self._block(number)
            if is_last:
                self._digested(block, is_last=True)
            self._keep(block)
            if not is_last:
                self._digested(block, is_last=False)
        except BaseException as error:  # whoever waits for the block would wait for ever
            self.fail(error)
            raise
        finally:
            with self._changed:
                self._is_reading = False
                self._changed.notify_all()

    def _block(self, number: int) -> bytes:
        if self._stream is None:
            self._stream = self._source.open_at(number)
        return self._source.read(self._stream, number)

    def _keep(self, block: bytes) -> None:
        with self._changed:
            self._kept.append(block)
            while len(self._kept) > self._most:
                self._kept.popleft()
                self._first += 1
            self._changed.notify_all()

    def _digested(self, block: bytes, *, is_last: bool) -> None:
        if self._digest is not None:
            self._digest.update(block)
            if is_last:
                self._source.check(self._digest.hexdigest())

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure
