"""The bytes of files while they pass by: read from zips, inflated, digested, held against what was promised."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from isal import isal_zlib
from isal.igzip_lib import IsalError

from lj_image.builders.oci.entries import File, Readable, Streamed, ZipMember
from lj_image.errors import BuildError

if TYPE_CHECKING:
    from hashlib import _Hash

PIECE_BYTES: Final = 256 * 1024
"""What is read of a large member at once."""
INFLATED_BYTES: Final = 4 * 1024 * 1024
"""The most that a piece may give at once, whatever a hostile member claims."""


class Inflater(Protocol):
    """What of a decompressor is used here."""

    eof: bool
    unused_data: bytes
    unconsumed_tail: bytes

    def decompress(self, piece: bytes, max_length: int, /) -> bytes: ...  # noqa: D102


class ZipSource:
    """Reads pieces of zips; the last one stays open, since a wheel's members come in a row."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._descriptor = -1

    def read(self, member: ZipMember, at: int, size: int) -> bytes:
        """Return compressed bytes of a member; fewer where the file ends."""
        if self._path is not member.archive:
            self.close()
            self._descriptor, self._path = os.open(member.archive, os.O_RDONLY), member.archive
        return os.pread(self._descriptor, size, member.offset + at)

    def pass_by(self, member: ZipMember, check: ContentCheck) -> None:
        """Have all of a member pass by a check, of which nothing is copied."""
        inflate = raw_inflater()
        for at in range(0, member.compressed_bytes, PIECE_BYTES):
            piece = self.read(member, at, min(PIECE_BYTES, member.compressed_bytes - at))
            if member.is_stored:
                check.update(piece)
            else:
                check.inflated(inflate, piece)
        if not member.is_stored:
            check.end(inflate)

    def close(self) -> None:
        """Let the last zip go."""
        if self._path is not None:
            os.close(self._descriptor)
            self._path = None


class PassingContent:
    """Digests what is read through it."""

    def __init__(self, reader: Readable, tar: _Hash) -> None:
        self._reader = reader
        self._tar = tar
        self._digest = hashlib.sha256()
        self.size_bytes = 0

    def read(self, size: int) -> bytes:
        """Return the next bytes."""
        piece = self._reader.read(size)
        self.size_bytes += len(piece)
        self._tar.update(piece)
        self._digest.update(piece)
        return piece

    def require_size(self, entry: File, stream: Streamed) -> None:
        """Raise BuildError unless there was as much as announced."""
        if self.size_bytes != stream.size_bytes:
            raise BuildError(
                f"{entry.owner}: {entry.path} has {self.size_bytes:,} bytes, "
                f"not the {stream.size_bytes:,} that were announced",
                hint="it changed or was cut while it was read; run the build again",
            )

    def hexdigest(self) -> str:
        """Return the SHA-256 of what was read."""
        return self._digest.hexdigest()


class ContentCheck:
    """What passes by of one member, for the layer's digest and for its own promises."""

    __slots__ = ("_crc", "_digest", "_fault", "_left", "_member", "_promised", "_take", "_tar")

    def __init__(
        self,
        tar: _Hash | None,
        member: ZipMember,
        *,
        with_digest: bool,
        with_record: bool = True,
        take: Callable[[bytes], None] | None = None,
    ) -> None:
        self._tar = tar
        self._take = take
        self._member = member
        self._promised = member.sha256 if with_record else None
        self._digest = hashlib.sha256() if with_digest or self._promised is not None else None
        self._crc = 0
        self._left = member.size_bytes
        self._fault = ""

    def update(self, plain: bytes) -> None:
        """Take the next bytes, inflated."""
        self._left -= len(plain)
        if self._tar is not None:
            self._tar.update(plain)
        self._crc = isal_zlib.crc32(plain, self._crc)
        if self._digest is not None:
            self._digest.update(plain)
        if self._take is not None:
            self._take(plain)

    def whole(self, piece: bytes) -> None:
        """Take all compressed bytes of a small member at once."""
        inflate = raw_inflater()
        try:
            plain = inflate.decompress(piece, self._left + 1)
        except IsalError as error:  # type: ignore[misc]  # its stub says nothing
            self._fault = f"its compressed bytes are damaged ({error})"
            return
        self.update(plain)
        self.end(inflate)

    def inflated(self, inflate: Inflater, piece: bytes) -> None:
        """Take what a piece inflates to; stops where there is more than was announced."""
        while not self._fault and not inflate.eof:
            most = min(self._left + 1, INFLATED_BYTES)
            try:
                plain = inflate.decompress(piece, most)
            except IsalError as error:  # type: ignore[misc]  # its stub says nothing
                self._fault = f"its compressed bytes are damaged ({error})"
                return
            self.update(plain)
            piece = inflate.unconsumed_tail
            if self._left < 0:
                self._fault = "it is longer than the zip's directory says"
            elif not piece and len(plain) < most:
                return  # all that this piece gives

    def end(self, inflate: Inflater) -> None:
        """Take that the last piece has passed."""
        if not self._fault and self._left < 0:
            self._fault = "it is longer than the zip's directory says"
        elif not self._fault and not inflate.eof:
            self._fault = "its compressed bytes end too early"
        elif not self._fault and inflate.unused_data:
            self._fault = "bytes follow the end of its compressed ones"

    def require_kept(self, entry: File) -> None:
        """Raise BuildError when the content is not what was promised."""
        fault, member = self._fault, self._member
        if not fault and self._left:
            fault = "its size is not the one in the zip's directory"
        if not fault and self._crc != member.crc32:
            fault = "its CRC-32 is not the one in the zip's directory"
        if not fault and self._promised is not None and self._digest and self._digest.digest() != self._promised:
            fault = "its content is not what RECORD promises"
        if fault:
            raise BuildError(
                f"{entry.owner}: {member.name}: {fault}",
                hint="the file is what the lock names, so it was published like that: ask its publisher, "
                "or take another version",
            )

    def hexdigest(self) -> str:
        """Return the content's SHA-256, nothing where it was not asked for."""
        return self._digest.hexdigest() if self._digest is not None else ""


def raw_inflater() -> Inflater:
    """Return what inflates raw deflate."""
    return isal_zlib.decompressobj(-15)  # raw deflate, as zips have it; ISA-L is twice as fast as zlib
