"""A blob's bytes as an upload takes them: any part, and again where a part has to be sent again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from lj_image.errors import ArtifactError
from lj_image.oci.descriptor import Descriptor
from lj_image.oci.streams import BLOCK_BYTES, Readable


class BlobBody(Protocol):
    """A blob of which parts are asked for, mostly one after the other."""

    @property
    def descriptor(self) -> Descriptor:
        """Digest and size in bytes of the whole."""

    def pieces(self, start: int, end: int) -> Iterable[bytes]:
        """Give the bytes from `start` up to `end`; raises ArtifactError where they are not those of the digest.

        Whoever takes them may stop in between, and ask for other parts.
        """


def pieces_of(stream: Readable, size_bytes: int, what: str) -> Iterable[bytes]:
    """Give so many bytes of a stream; raises ArtifactError where it ends before."""
    left = size_bytes
    while left:
        block = stream.read(min(left, BLOCK_BYTES))
        if not block:
            raise ArtifactError(f"the {what} has another size than it should", hint="build the image again")
        yield block
        left -= len(block)
