"""A blob, wherever it lies: read in blocks, counted, and found right or wrong."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from lj_image.errors import ArtifactError, LjImageError
from lj_image.oci.content import Blob
from lj_image.oci.descriptor import Descriptor
from lj_image.oci.source import Stream

BLOCK_BYTES: Final = 1024 * 1024
"""Read, kept and sent at once. Each costs every destination some 0.1 ms of Python, and the more memory the larger."""


class UnreadableSource(ArtifactError):
    """A blob cannot be read, or has other bytes than it should: it can be sent to nobody."""


class Source:
    """One blob of a transfer, for every thread that reads it."""

    def __init__(self, blob: Blob) -> None:
        self.blob = blob
        self.is_verified = not blob.descriptor.size_bytes
        """Whether all of it was read once and has its digest."""
        self._passed_bytes = 0
        self._lock = threading.Lock()

    @property
    def descriptor(self) -> Descriptor:
        """Digest and size in bytes of the whole."""
        return self.blob.descriptor

    @property
    def last_block(self) -> int:
        """The last block's number; -1 where there are no bytes."""
        return (self.descriptor.size_bytes - 1) // BLOCK_BYTES

    @property
    def read_bytes(self) -> int:
        """As much of what was read as is needed once."""
        return min(self._passed_bytes, self.descriptor.size_bytes)

    @property
    def reread_bytes(self) -> int:
        """What was read beyond that."""
        return self._passed_bytes - self.read_bytes

    def open_at(self, block: int) -> Stream:
        """Open it at a block; raises UnreadableSource."""
        with self._as_damage():
            return self.blob.open_at(block * BLOCK_BYTES)

    def read(self, stream: Stream, block: int) -> bytes:
        """Read a block from where the stream is; raises UnreadableSource where it ends before."""
        wanted = min(BLOCK_BYTES, self.descriptor.size_bytes - block * BLOCK_BYTES)
        with self._as_damage():
            content = stream.read(wanted)
            while len(content) < wanted and (more := stream.read(wanted - len(content))):
                content += more
        with self._lock:
            self._passed_bytes += len(content)
        if len(content) < wanted:
            raise self.damage()
        return content

    def check(self, digest: str) -> None:
        """Hold a hexadecimal sha256 of all that was read against the blob's; raises UnreadableSource."""
        if digest != self.descriptor.digest.hex:
            raise self.damage()
        self.is_verified = True

    def verify(self) -> None:
        """Read all of it for its digest alone; raises UnreadableSource."""
        digest, stream = hashlib.sha256(), self.open_at(0)
        with stream:
            for block in range(self.last_block + 1):
                digest.update(self.read(stream, block))
        self.check(digest.hexdigest())

    def damage(self) -> UnreadableSource:
        """Return the error that says that it is not what it should be."""
        return UnreadableSource(
            f"what is to be published as blob {self.descriptor.digest} has other bytes than it should",
            hint="it changed or was cut off while it was read: build the image again",
        )

    @contextmanager
    def _as_damage(self) -> Iterator[None]:
        """Make what a reader meets one kind of error: nobody can be sent what cannot be read."""
        try:
            yield
        except LjImageError as error:  # in a registry, too, where it may lie
            raise UnreadableSource(error.message, hint=error.hint, location=error.location) from None
        except OSError as error:
            raise UnreadableSource(
                f"blob {self.descriptor.digest} cannot be read: {error.strerror or error}", hint="build the image again"
            ) from None


class OwnStream:
    """Reads one blob for one destination, which is where nobody else is."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._stream: Stream | None = None
        self._next = 0

    def block(self, number: int) -> bytes:
        """Return a block, cheaply where it follows the one before; raises UnreadableSource."""
        if self._stream is None or number != self._next:
            self.close()
            self._stream = self._source.open_at(number)
        content = self._source.read(self._stream, number)
        self._next = number + 1
        return content

    def close(self) -> None:
        """Let the file go, or the connection."""
        if self._stream is not None:
            with suppress(OSError):
                self._stream.close()
            self._stream = None
