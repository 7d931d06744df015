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
NAME_BYTES: Final = 100
_LARGEST_OCTAL: Final = 0o77777777777
_IDS: Final = b"0000000\x000000000\x00"
_PREFIX_BYTES: Final = 155
_UNUSED_BYTES: Final = 12
_MAGIC: Final = b"ustar\x0000" + bytes(32 + 32 + 8 + 8)
"""Magic and version; no names of owner and group, no device."""
FILE_TAIL: Final = b"0" + bytes(NAME_BYTES) + _MAGIC + bytes(_PREFIX_BYTES + _UNUSED_BYTES)
"""How the header of every file with a short name ends, from its type on."""
_BLANK: Final = b" " * 8
"""The checksum's own field, while the sum is made."""
LINK_MODE: Final = 0o777
"""Of every symbolic link: Linux gives them no other."""


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
            return _packed(entry.path, entry.target, LINK_MODE, entry.mtime, 0, b"2")
        case HardLink():
            return _packed(entry.path, entry.target, entry.mode, entry.mtime, 0, b"1")


def padding(size_bytes: int) -> bytes:
    """Return the zeros that fill up a file's last block."""
    return bytes(-size_bytes % BLOCK_BYTES)


def _packed(path: str, target: str, mode: int, mtime: int, size_bytes: int, kind: bytes) -> bytes:
    split = _split(path) if path.isascii() and target.isascii() and len(target) <= NAME_BYTES else None
    if split is None or size_bytes > _LARGEST_OCTAL:
        return _long(path, target, mode, mtime, size_bytes, kind)
    prefix, name = split
    start = b"".join((name.ljust(NAME_BYTES, b"\0"), b"%07o\0" % mode, _IDS, b"%011o\0%011o\0" % (size_bytes, mtime)))
    if kind == b"0" and not prefix:
        end = FILE_TAIL
    else:
        link = target.encode().ljust(NAME_BYTES, b"\0")
        end = b"".join((kind, link, _MAGIC, prefix.ljust(_PREFIX_BYTES + _UNUSED_BYTES, b"\0")))
    # The lower half of Adler-32 (RFC 1950 §8.2) is one more than the sum of all bytes, which stays below its modulus.
    total = (zlib.adler32(b"".join((start, _BLANK, end))) & 0xFFFF) - 1
    return b"".join((start, b"%06o\0 " % total, end))


def _split(path: str) -> tuple[bytes, bytes] | None:
    """Return prefix and name of a path, None where they do not hold it."""
    text = path.encode()
    if len(text) <= NAME_BYTES:
        return b"", text
    at = text.find(b"/", len(text) - NAME_BYTES - 1)
    return (text[:at], text[at + 1 :]) if 0 < at <= _PREFIX_BYTES and at < len(text) - 1 else None


def _long(
    path: str, target: str, mode: int, mtime: int, size_bytes: int, kind: bytes, ids: tuple[int, int] = (0, 0)
) -> bytes:
    member = tarfile.TarInfo(path)
    member.uid, member.gid = ids
    member.linkname, member.mode, member.mtime, member.size, member.type = target, mode, mtime, size_bytes, kind
    return member.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
