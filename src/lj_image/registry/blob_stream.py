"""A blob of a registry, read forward: held against its digest, and a lost connection is taken up where it ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

import httpx

from lj_image.errors import ArtifactError
from lj_image.oci.descriptor import Descriptor
from lj_image.oci.digest import HashingReader
from lj_image.oci.streams import ChunkReader
from lj_image.registry.faults import unreachable

Open = Callable[[int], httpx.Response]
"""Returns the open response from an offset on; raises RegistryError."""
WaitBefore = Callable[[int], bool]
"""Waits before another attempt, counted from 0 with each new byte; says False when there should be none."""


class BlobStream:
    """Reads one blob. Whoever reads from its beginning to its end has the right bytes, or an ArtifactError."""

    def __init__(
        self, descriptor: Descriptor, origin: str, open_from: Open, wait_before: WaitBefore, offset: int = 0
    ) -> None:
        self._descriptor, self._origin = descriptor, origin
        self._open_from, self._wait_before, self._offset = open_from, wait_before, offset
        self._response = open_from(offset)
        self._reader = HashingReader(ChunkReader(self._chunks()))

    def read(self, size: int, /) -> bytes:
        """Return `size` bytes, fewer only at the end; raises ArtifactError where they are not those of the digest."""
        block = self._reader.read(size)
        if not self._offset and (len(block) < size or self._reader.size_bytes > self._descriptor.size_bytes):
            self._check()
        return block

    def close(self) -> None:
        """Let the connection go."""
        self._response.close()

    def _check(self) -> None:
        if (self._reader.digest, self._reader.size_bytes) != (self._descriptor.digest, self._descriptor.size_bytes):
            raise ArtifactError(
                f"{self._origin} delivers other bytes than those of {self._descriptor.digest}",
                hint="the registry or something before it is damaged; try another, or later",
            )

    def _chunks(self) -> Iterator[bytes]:
        passed, attempt = self._offset, 0
        while True:
            try:
                for chunk in self._response.iter_bytes():  # as they come: what is gathered would be lost
                    passed, attempt = passed + len(chunk), 0
                    yield chunk
            except httpx.RequestError as error:
                self._response.close()
                if not self._wait_before(attempt):
                    raise unreachable(error, self._origin.partition("/")[0]) from None
                attempt += 1
                self._response = self._open_from(passed)
            else:
                return

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.close()
