"""A digest as a type of its own, so that nothing else becomes part of a path or of an address."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Final, Protocol, Self

from lj_image.errors import ArtifactError
from lj_image.oci.streams import BLOCK_BYTES, Readable

# OCI image spec, descriptor.md, "Digests" and "SHA-256": lower-case hex alone.
_ALGORITHM: Final = "sha256"
_HEX: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, order=True)
class Digest:
    """The SHA-256 of some bytes; written `sha256:<64 hex digits>`."""

    hex: str

    def __post_init__(self) -> None:
        if not _HEX.fullmatch(self.hex):
            raise ArtifactError(
                f"no SHA-256 digest: {self.hex[:80]!r}", hint="a digest has 64 digits of 0-9 and a-f, in lower case"
            )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `sha256:<hex>`; raises ArtifactError for anything else, such as another algorithm."""
        algorithm, _, digits = text.partition(":")
        if algorithm != _ALGORITHM or not _HEX.fullmatch(digits):
            raise ArtifactError(f"no digest: {text[:80]!r}", hint="lj-image knows sha256:<64 hex digits> alone")
        return cls(digits)

    @classmethod
    def of(cls, content: bytes) -> Self:
        """Return the digest of bytes."""
        return cls(hashlib.sha256(content).hexdigest())

    def __str__(self) -> str:
        return f"{_ALGORITHM}:{self.hex}"


def digest_of_stream(content: Readable) -> tuple[Digest, int]:
    """Read to the end; return the digest and the number of bytes."""
    digest, size_bytes = hashlib.sha256(), 0
    while block := content.read(BLOCK_BYTES):
        digest.update(block)
        size_bytes += len(block)
    return Digest(digest.hexdigest()), size_bytes


class Writable(Protocol):
    """The part of a file that is written forward only."""

    def write(self, content: bytes, /) -> object: ...  # noqa: D102


class HashingWriter:
    """Passes what is written on to a file, and digests and counts it."""

    def __init__(self, file: Writable) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self.size_bytes = 0

    def write(self, content: bytes | memoryview) -> int:
        """Write all of the content; return its length."""
        self._file.write(content)  # type: ignore[arg-type]  # files take any buffer
        self._digest.update(content)
        self.size_bytes += len(content)
        return len(content)

    @property
    def digest(self) -> Digest:
        """Of all that was written until now."""
        return Digest(self._digest.hexdigest())


class HashingReader:
    """Passes what is read on, and digests and counts it."""

    def __init__(self, stream: Readable) -> None:
        self._stream = stream
        self._digest = hashlib.sha256()
        self.size_bytes = 0

    def read(self, size: int, /) -> bytes:
        """Return the next bytes of the stream."""
        block = self._stream.read(size)
        self._digest.update(block)
        self.size_bytes += len(block)
        return block

    @property
    def digest(self) -> Digest:
        """Of all that was read until now."""
        return Digest(self._digest.hexdigest())
