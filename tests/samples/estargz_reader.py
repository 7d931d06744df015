"""Reads eStargz by its published format alone, through offsets: nothing of lj-image has a part in it.

https://github.com/containerd/stargz-snapshotter/blob/main/docs/estargz.md
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import tarfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FOOTER_BYTES = 51


@dataclass(frozen=True)
class Estargz:
    """A layer that was opened by its footer."""

    blob: bytes
    table_offset: int
    table_digest: str
    entries: tuple[Mapping[str, Any], ...]

    def names(self) -> list[str]:
        return [entry["name"] for entry in self.entries if entry["type"] != "chunk"]

    def entry(self, name: str) -> Mapping[str, Any]:
        (found,) = (entry for entry in self.entries if entry["name"] == name and entry["type"] != "chunk")
        return found

    def chunks(self, name: str) -> list[Mapping[str, Any]]:
        """Return the rows of a file that have content, each with its size filled in."""
        rows = [entry for entry in self.entries if entry["name"] == name and "offset" in entry]
        size = self.entry(name).get("size", 0)
        return [row | {"chunkSize": row.get("chunkSize") or size - row.get("chunkOffset", 0)} for row in rows]

    def read(self, name: str) -> bytes:
        """Return a file's content, each chunk fetched, inflated and checked by itself."""
        content = b""
        for row in self.chunks(name):
            assert row.get("chunkOffset", 0) == len(content)
            part = inflated_at(self.blob, row["offset"])
            assert len(part) == row["chunkSize"]
            assert row["chunkDigest"] == digest_of(part)
            content += part
        assert len(content) == self.entry(name).get("size", 0)
        assert self.entry(name).get("digest", digest_of(content)) == digest_of(content)
        return content


def opened(blob: bytes) -> Estargz:
    """Open a layer by its last bytes."""
    offset = table_offset(blob[-FOOTER_BYTES:])
    with tarfile.open(fileobj=io.BytesIO(inflated_at(blob, offset))) as tar:
        (member,) = tar.getmembers()
        assert member.name == "stargz.index.json"
        file = tar.extractfile(member)
        assert file is not None
        table = file.read()
    document = json.loads(table)
    assert document["version"] == 1
    return Estargz(blob, offset, digest_of(table), tuple(document["entries"]))


def table_offset(footer: bytes) -> int:
    """Return where the footer says the table begins."""
    start = struct.unpack("<10sH2sH22s5sII", footer)
    header, extra_bytes, ids, subfield_bytes, subfield, deflate, crc, size = start
    assert header[:4] == b"\x1f\x8b\x08\x04"
    assert (extra_bytes, ids, subfield_bytes) == (26, b"SG", 22)
    assert subfield[16:] == b"STARGZ"
    assert (deflate, crc, size) == (b"\x01\x00\x00\xff\xff", 0, 0)
    return int(subfield[:16], 16)


def inflated_at(blob: bytes, offset: int) -> bytes:
    """Inflate the one gzip member that begins there."""
    inflate = zlib.decompressobj(wbits=31)
    content = inflate.decompress(blob[offset:])
    assert inflate.eof
    return content


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
