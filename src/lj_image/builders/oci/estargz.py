"""Entries -> a layer in the eStargz format: a plain `tar.gz`, whose files a snapshotter fetches when they are read.

Format: https://github.com/containerd/stargz-snapshotter/blob/main/docs/estargz.md. Each file that is not empty starts a
gzip member; a table of contents, the tar's last entry, says where; a footer says where the table is. The format allows
several small files in one member (`innerOffset`); snapshotters before 0.13 and the verifier of its reader do not, so
each file has its own here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from types import TracebackType
from typing import Any, BinaryIO, Final, Self

from lj_image.builders.oci.chunks import CHUNK_BYTES, Chunk
from lj_image.builders.oci.entries import Entry, File, Folder, HardLink, Symlink, Written
from lj_image.builders.oci.fresh_gzip import MAKER, gzip_member
from lj_image.builders.oci.layer_blob import LayerBlob
from lj_image.builders.oci.layer_writer import LayerWriter
from lj_image.builders.oci.tar_headers import END, LINK_MODE, header, padding
from lj_image.errors import BuildError, UsageError
from lj_image.oci.media_types import Compression

ESTARGZ_MAKER: Final = f"1-{CHUNK_BYTES}-{MAKER}"
"""Names what decides the bytes of such a layer, beside its entries."""
TABLE_NAME: Final = "stargz.index.json"
NO_PREFETCH: Final = ".no.prefetch.landmark"
"""Its presence says that no files are to be fetched before a container starts."""
PREFETCH: Final = ".prefetch.landmark"
TABLE_DIGEST: Final = "containerd.io/snapshot/stargz/toc.digest"
"""The annotation of a layer's descriptor without which a snapshotter does not trust the table."""
TAR_BYTES: Final = "io.containers.estargz.uncompressed-size"
"""The annotation by which containers/storage knows how large the layer's tar is."""
_LANDMARK_CONTENT: Final = b"\x0f"
_VERSION: Final = 1
_TABLE_MODE: Final = 0o444
_ROOT: Final = {"uid": 0, "gid": 0}
_EMPTY_SHA256: Final = hashlib.sha256().hexdigest()
# RFC 1952 §2.3: as any of our members, with FEXTRA (4) among the flags.
_FOOTER_HEADER: Final = b"\x1f\x8b\x08\x04\x00\x00\x00\x00\x00\xff"
# One empty stored block (RFC 1951 §3.2.4), then CRC-32 and size of nothing.
_FOOTER_END: Final = b"\x01\x00\x00\xff\xff" + bytes(8)


class EstargzWriter:
    """Writes entries as one layer, its table of contents and its footer."""

    def __init__(self, target: BinaryIO) -> None:
        self._writer = LayerWriter(target, self._written)
        self._rows: list[bytes] = []
        self.annotations: Mapping[str, str] = {}
        """Of the layer's descriptor, once it is finished."""
        self._add(File(NO_PREFETCH, _TABLE_MODE, 0, Written(_LANDMARK_CONTENT)))

    def __enter__(self) -> Self:
        self._writer.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.__exit__(kind, error, trace)

    def add(self, entry: Entry) -> None:
        """Write an entry; raises BuildError for what the table cannot name, and what a plain layer refuses."""
        _require_nameable(entry)
        self._add(entry)

    def finish(self) -> LayerBlob:
        """End the tar with the table, and return what the layer is."""
        writer = self._writer
        writer.flush()
        table = b'{"version":%d,"entries":[%s]}' % (_VERSION, b",".join(self._rows))
        self._rows.clear()
        plain, offset = _entry_of(table), writer.position
        writer.append_raw(gzip_member(plain), plain)
        writer.append_raw(footer(offset), b"")
        blob = writer.finish(end=False)
        digest = f"sha256:{hashlib.sha256(table).hexdigest()}"
        self.annotations = {TABLE_DIGEST: digest, TAR_BYTES: str(blob.tar_bytes)}
        return blob

    def _add(self, entry: Entry) -> None:
        self._writer.add(entry)
        if not isinstance(entry, File):
            self._rows.append(_row(entry, {}))
        elif not entry.content.size_bytes:
            self._rows.append(_row(entry, {"digest": f"sha256:{_EMPTY_SHA256}"}))

    def _written(self, file: File, chunks: Sequence[Chunk], digest: str) -> None:
        self._rows.extend(_file_rows(file, chunks, digest))


def require_not_lazy(compression: Compression, *, is_lazy: bool) -> None:
    """Raise UsageError where a layer is to be both in zstd and eStargz, which is gzip by its format."""
    if is_lazy and compression == "zstd":
        raise UsageError(
            "--lazy and --compression zstd exclude each other: eStargz is a format of gzip layers, and what "
            "does the like for zstd (zstd:chunked) is another format, which lj-image does not write",
            hint="choose one of the two",
        )


def footer(table_offset: int) -> bytes:
    """Return the 51 bytes that end a layer: an empty gzip member that says where the table's begins."""
    subfield = b"%016xSTARGZ" % table_offset
    # RFC 1952 §2.3.1.1: XLEN, then SI1, SI2 and LEN of the one subfield.
    extra = b"SG" + len(subfield).to_bytes(2, "little") + subfield
    return b"".join((_FOOTER_HEADER, len(extra).to_bytes(2, "little"), extra, _FOOTER_END))


def _entry_of(table: bytes) -> bytes:
    """Return the table as the tar's last entry, and the tar's end: both are in one gzip member."""
    entry = header(File(TABLE_NAME, _TABLE_MODE, 0, Written(table)))
    return b"".join((entry, table, padding(len(table)), END))


def _file_rows(file: File, chunks: Sequence[Chunk], digest: str) -> Iterator[bytes]:
    """Yield the row of a file, and those of its chunks but the first; the last one's size is left out, as asked."""
    size, last = file.content.size_bytes, chunks[-1]
    for chunk in chunks:
        where: dict[str, Any] = {"offset": chunk.offset}
        if chunk.at:
            where["chunkOffset"] = chunk.at
        if chunk is not last:
            where["chunkSize"] = CHUNK_BYTES
        where["chunkDigest"] = f"sha256:{chunk.digest}"
        if chunk.at:
            yield _json({"name": file.path, "type": "chunk", **where})
        else:
            yield _row(file, {"size": size, **where, "digest": f"sha256:{digest}"})


def _row(entry: Entry, facts: Mapping[str, Any]) -> bytes:
    """Return the row of an entry; a time that says nothing is left out."""
    match entry:
        case File():
            row: dict[str, Any] = {"name": entry.path, "type": "reg", "mode": entry.mode, **_ROOT}
        case Folder():
            row = {"name": f"{entry.path}/", "type": "dir", "mode": entry.mode, "uid": entry.uid, "gid": entry.gid}
        case Symlink():
            row = {"name": entry.path, "type": "symlink", "linkName": entry.target, "mode": LINK_MODE, **_ROOT}
        case HardLink():
            row = {"name": entry.path, "type": "hardlink", "linkName": entry.target, "mode": entry.mode, **_ROOT}
    if entry.mtime:  # zero is the format's word for unknown, said by nothing
        row["modtime"] = _time(entry.mtime)
    return _json({**row, **facts})


def _json(row: Mapping[str, Any]) -> bytes:
    return json.dumps(row, separators=(",", ":"), ensure_ascii=False).encode()


@lru_cache(maxsize=1024)
def _time(mtime: int) -> str:
    """Return RFC 3339, UTC."""
    return datetime.fromtimestamp(mtime, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _require_nameable(entry: Entry) -> None:
    if entry.path in (TABLE_NAME, NO_PREFETCH, PREFETCH):
        raise BuildError(
            f"{entry.owner}: {entry.path} is a name that eStargz keeps for itself",
            hint="put the file elsewhere, or build without --lazy",
        )
    try:
        f"{entry.path}{entry.target if isinstance(entry, (Symlink, HardLink)) else ''}".encode()
    except UnicodeEncodeError:
        raise BuildError(
            f"{entry.owner}: the name {entry.path!r} is no UTF-8, and eStargz lists names in JSON",
            hint="rename the file, or build without --lazy",
        ) from None
