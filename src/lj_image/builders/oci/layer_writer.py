"""Entries -> one layer blob, `tar.gz`, in a single pass: nothing is recompressed, nothing is held.

A zip's member is a raw deflate stream, and so is the body of a gzip member: a file's compressed bytes go into the layer
as they are, with a gzip header before them and CRC-32 and size after them, both of which the zip's directory already
holds (APPNOTE 4.3.8, RFC 1952 §2.3). Headers and paddings go between as small members of their own; members in a row
are one gzip file (RFC 1952 §2.2). The bytes are inflated once, to be hashed and held against what was promised.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Sequence
from types import TracebackType
from typing import BinaryIO, Final, Self

from isal import isal_zlib

from lj_image.builders.oci.chunks import CHUNK_BYTES, Chunk, ChunkCutter
from lj_image.builders.oci.entries import Entry, File, Streamed, Written, ZipMember
from lj_image.builders.oci.fixed_deflate import deflated, stored, stored_header
from lj_image.builders.oci.fresh_gzip import GZIP_HEADER, MEMBER_BYTES, gzip_member, gzip_members, gzip_trailer
from lj_image.builders.oci.layer_blob import LayerBlob
from lj_image.builders.oci.passing import PIECE_BYTES, ContentCheck, PassingContent, ZipSource, raw_inflater
from lj_image.builders.oci.tar_headers import END, header, padding

LAYOUT_VERSION: Final = 1
"""Counted up when the same entries are to give other bytes, so that no cached layer of before is taken for it."""
_GATHERED_BYTES: Final = 256 * 1024
"""Small pieces are hashed and written together; each call costs about a microsecond."""
_WITH_HEADER_BYTES: Final = 64
"""A file made here that is so small goes into the header's own gzip member."""
_STORED_BYTES: Final = 0xFFFF


class LayerWriter:
    """Writes entries as one layer; `payload` is told of each file: where its chunks are, and its digest.

    `trusted` names owners of files that were held against their RECORD before: then size and CRC-32 are enough. With
    `payload`, every file that is not empty starts a member of its own, and a large one is cut into chunks, as
    eStargz wants it.
    """

    def __init__(
        self,
        target: BinaryIO,
        payload: Callable[[File, Sequence[Chunk], str], None] | None = None,
        trusted: Collection[str] = (),
    ) -> None:
        self._target = target
        self._payload = payload
        self._trusted = frozenset(trusted)
        self._plain = bytearray()
        self._gathered = bytearray()
        self._tar = hashlib.sha256()
        self._blob = hashlib.sha256()
        self._written = self._tar_bytes = 0
        self._source = ZipSource()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._source.close()

    @property
    def position(self) -> int:
        """How many bytes the blob has, without what waits for the next member."""
        return self._written + len(self._gathered)

    def add(self, entry: Entry) -> None:
        """Write an entry; raises BuildError when a content is not what was promised."""
        self._plain += header(entry)
        if not isinstance(entry, File) or not entry.content.size_bytes:
            return
        content = entry.content
        if self._payload is None and isinstance(content, Written) and content.size_bytes <= _WITH_HEADER_BYTES:
            self._plain += content.content
        else:
            self._write_payload(entry)
        self._plain += padding(content.size_bytes)

    def flush(self) -> None:
        """End the member that headers and paddings wait in, so that the next byte starts a new one."""
        if not self._plain:
            return
        plain = bytes(self._plain)
        self._plain.clear()
        self._tar_bytes += len(plain)
        self._tar.update(plain)
        self._emit(b"".join((GZIP_HEADER, deflated(plain), gzip_trailer(isal_zlib.crc32(plain), len(plain)))))

    def append_raw(self, member: bytes, plain: bytes) -> None:
        """Write a gzip member as it is, which holds `plain`; what follows the tar's end, say."""
        self.flush()
        self._tar_bytes += len(plain)
        self._tar.update(plain)
        self._emit(member)

    def finish(self, *, end: bool = True) -> LayerBlob:
        """End the tar, unless `end` says that its end is written already, and return what the layer is."""
        if end:
            self._plain += END
        self.flush()
        self._pass_on()
        return LayerBlob(
            f"sha256:{self._blob.hexdigest()}", self._written, f"sha256:{self._tar.hexdigest()}", self._tar_bytes
        )

    def _write_payload(self, entry: File) -> None:
        self.flush()
        start = self.position
        if self._payload is None:
            self._write_whole(entry)
        elif entry.content.size_bytes > CHUNK_BYTES:
            digest, chunks = self._cut(entry)
            self._payload(entry, chunks, digest)
        else:
            digest = self._write_whole(entry)
            self._payload(entry, (Chunk(0, start, digest),), digest)
        self._tar_bytes += entry.content.size_bytes

    def _write_whole(self, entry: File) -> str:
        match entry.content:
            case ZipMember() as member:
                return self._splice(entry, member)
            case Written(content):
                return self._write_anew(content)
            case Streamed() as stream:
                return self._stream(entry, stream)

    def _cut(self, entry: File) -> tuple[str, tuple[Chunk, ...]]:
        """Compress a file anew, in chunks; return its digest and where they are."""
        with ChunkCutter(self._emit_at) as cutter:
            match entry.content:
                case ZipMember() as member:
                    check = ContentCheck(self._tar, member, with_digest=True, take=cutter.write)
                    self._source.pass_by(member, check)
                    check.require_kept(entry)
                    return check.hexdigest(), cutter.finish()
                case Written(content):
                    self._tar.update(content)
                    cutter.write(content)
                    return hashlib.sha256(content).hexdigest(), cutter.finish()
                case Streamed() as stream:
                    passing = PassingContent(stream.reader, self._tar)
                    while piece := passing.read(PIECE_BYTES):
                        cutter.write(piece)
                    passing.require_size(entry, stream)
                    return passing.hexdigest(), cutter.finish()

    def _splice(self, entry: File, member: ZipMember) -> str:
        """Copy a member's compressed bytes; inflate them on the way, for the digests and the checks."""
        check = ContentCheck(
            self._tar,
            member,
            with_digest=self._payload is not None,
            with_record=entry.owner not in self._trusted,
        )
        if member.compressed_bytes <= PIECE_BYTES and not member.is_stored:
            piece = self._source.read(member, 0, member.compressed_bytes)
            check.whole(piece)
            self._emit(b"".join((GZIP_HEADER, piece, gzip_trailer(member.crc32, member.size_bytes))))
        else:
            self._emit(GZIP_HEADER)
            if member.is_stored:
                self._copy_stored(member, check)
            else:
                self._copy_large(member, check)
            self._emit(gzip_trailer(member.crc32, member.size_bytes))
        check.require_kept(entry)
        return check.hexdigest()

    def _copy_large(self, member: ZipMember, check: ContentCheck) -> None:
        inflate = raw_inflater()
        for at in range(0, member.compressed_bytes, PIECE_BYTES):
            piece = self._source.read(member, at, min(PIECE_BYTES, member.compressed_bytes - at))
            check.inflated(inflate, piece)
            self._emit(piece)
        check.end(inflate)

    def _copy_stored(self, member: ZipMember, check: ContentCheck) -> None:
        for at in range(0, member.size_bytes, _STORED_BYTES):
            piece = self._source.read(member, at, min(_STORED_BYTES, member.size_bytes - at))
            check.update(piece)
            self._emit(stored_header(len(piece), final=at + len(piece) == member.size_bytes))
            self._emit(piece)

    def _write_anew(self, content: bytes) -> str:
        # Not compressed: a compressor's version would decide about the bytes of nearly every layer, to save so little.
        self._tar.update(content)
        self._emit(b"".join((GZIP_HEADER, stored(content), gzip_trailer(isal_zlib.crc32(content), len(content)))))
        return hashlib.sha256(content).hexdigest()

    def _stream(self, entry: File, stream: Streamed) -> str:
        passing = PassingContent(stream.reader, self._tar)
        if stream.size_bytes <= MEMBER_BYTES:
            self._emit(gzip_member(passing.read(stream.size_bytes)))
        else:
            for member in gzip_members(passing):
                self._emit(member)
        passing.require_size(entry, stream)
        return passing.hexdigest()

    def _emit_at(self, member: bytes) -> int:
        start = self.position
        self._emit(member)
        return start

    def _emit(self, piece: bytes) -> None:
        self._gathered += piece
        if len(self._gathered) >= _GATHERED_BYTES:
            self._pass_on()

    def _pass_on(self) -> None:
        self._blob.update(self._gathered)
        self._target.write(self._gathered)
        self._written += len(self._gathered)
        self._gathered.clear()
