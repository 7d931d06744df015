"""Entries -> tar headers: POSIX.1-2017 ustar, with pax records for what does not fit.

Packed by hand: a layer has tens of thousands of them, and `tarfile` takes ten times as long for each.
"""

from __future__ import annotations

import tarfile
import zlib
from typing import Final

from lj_image.builders.oci.entries import Entry, File, Folder, HardLink, Symlink

BLOCK_BYTES: Final = 512
END: Final = bytes(2 * BLOCK_BYTES)
"""Two empty blocks end a tar."""
_NAME_BYTES: Final = 100
_LARGEST_OCTAL: Final = 0o77777777777
_IDS: Final = b"0000000\x000000000\x00"
_TAIL: Final = b"ustar\x0000" + bytes(32 + 32 + 8 + 8 + 155 + 12)
"""Magic and version; no names of owner and group, no device, no prefix."""
FILE_TAIL: Final = b"0" + bytes(_NAME_BYTES) + _TAIL
"""How the header of every file with a short name ends, from its type on."""
_BLANK: Final = b" " * 8
"""The checksum's own field, while the sum is made."""
_LINK_MODE: Final = 0o777


def header(entry: Entry) -> bytes:
    """Return the header blocks of an entry, with a pax header before them where a name needs one."""
    match entry:
        case File():
            return _packed(entry.path, "", entry.mode, entry.mtime, entry.content.size_bytes, b"0")
        case Folder():
            if entry.uid or entry.gid:
                return _long(f"{entry.path}/", "", entry.mode, entry.mtime, 0, b"5", (entry.uid, entry.gid))
            return _packed(f"{entry.path}/", "", entry.mode, entry.mtime, 0, b"5")
        case Symlink():
            return _packed(entry.path, entry.target, _LINK_MODE, entry.mtime, 0, b"2")
        case HardLink():
            return _packed(entry.path, entry.target, entry.mode, entry.mtime, 0, b"1")


def padding(size_bytes: int) -> bytes:
    """Return the zeros that fill up a file's last block."""
    return bytes(-size_bytes % BLOCK_BYTES)


def _packed(path: str, target: str, mode: int, mtime: int, size_bytes: int, kind: bytes) -> bytes:
    if not (path.isascii() and target.isascii() and len(path) <= _NAME_BYTES and len(target) <= _NAME_BYTES):
        return _long(path, target, mode, mtime, size_bytes, kind)
    if size_bytes > _LARGEST_OCTAL:
        return _long(path, target, mode, mtime, size_bytes, kind)
    name, link = path.encode(), target.encode()
    start = b"".join((name.ljust(_NAME_BYTES, b"\0"), b"%07o\0" % mode, _IDS, b"%011o\0%011o\0" % (size_bytes, mtime)))
    end = FILE_TAIL if kind == b"0" else b"".join((kind, link.ljust(_NAME_BYTES, b"\0"), _TAIL))
    # The lower half of Adler-32 (RFC 1950 §8.2) is one more than the sum of all bytes, which stays below its modulus.
    total = (zlib.adler32(b"".join((start, _BLANK, end))) & 0xFFFF) - 1
    return b"".join((start, b"%06o\0 " % total, end))


def _long(
    path: str, target: str, mode: int, mtime: int, size_bytes: int, kind: bytes, ids: tuple[int, int] = (0, 0)
) -> bytes:
    member = tarfile.TarInfo(path)
    member.uid, member.gid = ids
    member.linkname, member.mode, member.mtime, member.size, member.type = target, mode, mtime, size_bytes, kind
    return member.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
