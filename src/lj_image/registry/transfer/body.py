"""A blob for one destination: any part of it, from the feed that it shares with the others or read by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lj_image.oci.descriptor import Descriptor
from lj_image.registry.transfer.feed import Feed
from lj_image.registry.transfer.pace import Member
from lj_image.registry.transfer.source import BLOCK_BYTES, OwnStream, Source


class Abandoned(Exception):
    """Nothing more is to be sent to this destination."""


class FeedBody:
    """What an upload takes its bytes from (`uploading.body.BlobBody`); one thread uses it."""

    def __init__(
        self,
        source: Source,
        feed: Feed,
        member: Member,
        *,
        advances: Callable[[int], None],
        passes: Callable[[], None],
        is_given_up: Callable[[], bool],
    ) -> None:
        """`advances` is told how many bytes more are taken, or fewer; `passes`, that the last are; by this thread."""
        self._source, self._feed, self._member = source, feed, member
        self._advances, self._passes, self._is_given_up = advances, passes, is_given_up
        self._at = 0

    @property
    def descriptor(self) -> Descriptor:
        """Digest and size in bytes of the whole."""
        return self._source.descriptor

    def pieces(self, start: int, end: int) -> Iterator[bytes]:
        """Give the bytes from `start` up to `end`.

        Raises ArtifactError where the blob cannot be read or has other bytes than it should, Abandoned once its
        destination is given up.
        """
        self._moves_to(start)
        own = OwnStream(self._source)
        try:
            while self._at < end:
                if self._is_given_up():
                    raise Abandoned
                number, skipped = divmod(self._at, BLOCK_BYTES)
                block = self._block(number, own)
                piece = block if not skipped and end - self._at >= len(block) else block[skipped:][: end - self._at]
                yield piece
                self._moves_to(self._at + len(piece))
        finally:
            own.close()

    def ends(self) -> None:
        """Count what did not have to be sent to the end: the destination has all of it."""
        self._moves_to(self.descriptor.size_bytes)

    def _block(self, number: int, own: OwnStream) -> bytes:
        block = self._feed.take(self._member, number)
        is_last = number == self._source.last_block
        if block is not None:
            own.close()
        else:
            if is_last:
                self._feed.assure()
            block = own.block(number)
        if is_last:
            self._passes()
        return block

    def _moves_to(self, at_byte: int) -> None:
        if at_byte != self._at:
            self._advances(at_byte - self._at)
            self._at = at_byte
