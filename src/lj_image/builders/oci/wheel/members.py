"""The members of a wheel's zip, as far as they can be trusted without reading them.

Format: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT. `zipfile` reads the directory; what it lets pass,
and what a splice depends on, is checked here: each member's header, where its bytes lie, and how far they may unpack.
"""

from __future__ import annotations

import os
import re
import stat
import struct
import unicodedata
import zipfile
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from lj_image.builders.oci.compose import WHITEOUT
from lj_image.builders.oci.entries import EARLIEST_TIME
from lj_image.builders.oci.wheel.wheel import Wheel

MIB: Final = 1024 * 1024
MOST_MEMBERS: Final = 200_000
"""Ten times as many as the largest wheel that is known."""
MOST_RATIO: Final = 100
"""Of all that a wheel unpacks to, to its own size; wheels of libraries reach about 10."""
LARGEST_READ_BYTES: Final = 64 * MIB
"""Of what is read as a whole; everything else passes by in pieces, when the layer is written."""
_FREE_BYTES: Final = 64 * MIB
"""So much may unpack from however little."""
_DEFLATE_RATIO: Final = 1032
"""Deflate's own limit: 258 bytes for two bits (zlib's technical details)."""
# APPNOTE 4.3.7: signature, version, flags, method, time, date, CRC-32, sizes, lengths of name and extra field.
_LOCAL: Final = struct.Struct("<4sHHHHHIIIHH")
_LOCAL_SIGNATURE: Final = b"PK\3\4"
_END_BYTES: Final = 22
_END_SIGNATURE: Final = b"PK\5\6"
_ENCRYPTED: Final = 0x1 | 0x40 | 0x2000
_HAS_DESCRIPTOR: Final = 0x8
_UTF_8: Final = 0x800
_IN_EXTRA: Final = 0xFFFFFFFF
"""A size that is found in the zip64 extra field."""
_UNIX: Final = 3
_LONGEST_PART: Final = 255
"""Linux, limits.h: NAME_MAX."""
_FOREIGN: Final = re.compile(r"\A[A-Za-z]:|[\\\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""A drive, a backslash, and what ends or garbles a line of RECORD or of a message."""
_METHODS: Final = {9: "deflate64", 12: "bzip2", 14: "lzma", 20: "zstd", 93: "zstd", 95: "xz"}


def opened(wheel: Wheel) -> zipfile.ZipFile:
    """Open a wheel; raises BuildError where it is no whole zip."""
    try:
        archive = zipfile.ZipFile(wheel.path)
    except Exception as error:  # whatever damaged bytes do to zipfile
        raise wheel.fault("", f"it is no whole zip ({error})") from None
    try:
        _require_whole(wheel, archive)
        return archive
    except BaseException:
        archive.close()
        raise


def files_of(wheel: Wheel, archive: zipfile.ZipFile) -> tuple[zipfile.ZipInfo, ...]:
    """Return the members that are files, in the order of the archive; raises BuildError for any that is a danger."""
    every = archive.infolist()
    if len(every) > MOST_MEMBERS:
        raise wheel.fault("", f"it has {len(every):,} members, more than {MOST_MEMBERS:,}")
    names: dict[str, str] = {}
    for item in every:
        require_plain(wheel, item.orig_filename.removesuffix("/"))  # zipfile cuts the other one at a NUL
        name = item.filename if item.filename.isascii() else unicodedata.normalize("NFC", item.filename)
        if (before := names.setdefault(name, item.filename)) is not item.filename:
            raise wheel.fault(item.filename, _twice(before, item.filename))
        _require_file_or_folder(wheel, item)
    _require_sane_sizes(wheel, every)
    return tuple(item for item in every if not item.is_dir())


def offsets(wheel: Wheel, archive: zipfile.ZipFile, members: Iterable[zipfile.ZipInfo]) -> Iterator[int]:
    """Yield where each member's content begins, having compared its own header with the directory.

    Raises BuildError where they differ, or where contents overlap.
    """
    with wheel.path.open("rb", buffering=0) as file:
        number = file.fileno()
        ends = _ends(archive)
        for item in members:
            raw = _raw_name(item)
            header = os.pread(number, _LOCAL.size + len(raw), item.header_offset)
            begin = item.header_offset + _compared(wheel, item, raw, header)
            if begin + item.compress_size > ends[item.header_offset]:
                raise wheel.fault(item.filename, "it overlaps what follows it in the zip")
            yield begin


def read_member(wheel: Wheel, archive: zipfile.ZipFile, item: zipfile.ZipInfo) -> bytes:
    """Return a small member: metadata, a script, a source; raises BuildError for a large or damaged one."""
    if item.file_size > LARGEST_READ_BYTES:
        raise wheel.fault(item.filename, f"it has {item.file_size:,} bytes, too many for what it is")
    try:
        return archive.read(item)
    except Exception as error:  # whatever damaged bytes do to zipfile and zlib
        raise wheel.fault(item.filename, f"it cannot be read ({error})") from None


def time_of(item: zipfile.ZipInfo) -> int:
    """Return a member's time, which has no zone and is taken as UTC; impossible ones become the earliest."""
    return _seconds(item.date_time)


@lru_cache(maxsize=1024)  # most members of a wheel have one of few times
def _seconds(time: tuple[int, int, int, int, int, int]) -> int:
    *date_and_minute, second = time
    try:
        found = datetime(*date_and_minute, min(second, 59), tzinfo=UTC)  # type: ignore[misc,arg-type]
    except ValueError:
        return EARLIEST_TIME
    return max(EARLIEST_TIME, int(found.timestamp()))


def is_executable(item: zipfile.ZipInfo) -> bool:
    """Say whether pip would make it executable."""
    mode = item.external_attr >> 16
    return stat.S_ISREG(mode) and bool(mode & 0o111)


def require_plain(wheel: Wheel, path: str) -> None:
    """Raise BuildError unless a path stays where it is put, on every system and in every layer."""
    if not path.isprintable() or "\\" in path or ":" in path[1:2]:  # rare, and cheaper to ask than the pattern
        _require_of_this_system(wheel, path)
    if (len(path) > _LONGEST_PART or not path.isascii()) and any(
        len(part.encode()) > _LONGEST_PART for part in path.split("/")
    ):
        raise wheel.fault(path, f"a part of its name is longer than {_LONGEST_PART} bytes, which no file system holds")
    framed = f"/{path}/"
    if "//" not in framed and "/." not in framed:
        return
    for part in path.split("/"):
        if part in ("", ".", ".."):
            raise wheel.fault(path, "its name leads elsewhere")
        if part.startswith(WHITEOUT):
            raise wheel.fault(path, "a name that begins with .wh. deletes files of other layers")


def _require_of_this_system(wheel: Wheel, path: str) -> None:
    if _FOREIGN.search(path):
        raise wheel.fault(path.encode("unicode_escape").decode(), "its name is no path of this system")


def _twice(before: str, name: str) -> str:
    return "it is there twice" if before == name else f"it differs from {before!r} by its Unicode form only"


def _require_whole(wheel: Wheel, archive: zipfile.ZipFile) -> None:
    """Refuse bytes before the first member and after the end, which other readers take for something else."""
    first = min((item.header_offset for item in archive.infolist()), default=0)
    if first:
        raise wheel.fault("", f"{first:,} bytes stand before its first member")
    end = _END_BYTES + len(archive.comment)
    with wheel.path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - end))
        tail = file.read(end)
    if not tail.startswith(_END_SIGNATURE) or int.from_bytes(tail[20:22], "little") != len(archive.comment):
        raise wheel.fault("", "bytes follow the end of its zip")


def _require_file_or_folder(wheel: Wheel, item: zipfile.ZipInfo) -> None:
    if item.flag_bits & _ENCRYPTED:
        raise wheel.fault(item.filename, "it is encrypted")
    if item.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        method = _METHODS.get(item.compress_type, f"method {item.compress_type}")
        raise wheel.fault(
            item.filename,
            f"it is compressed by {method}, which wheels may not use",
            hint="have the wheel built again with deflate, as every build backend does by itself",
        )
    is_folder = item.filename.endswith("/")
    if is_folder and item.file_size:
        raise wheel.fault(item.filename, "it is a folder, and has content")
    kind = stat.S_IFMT(item.external_attr >> 16) if item.create_system == _UNIX else 0
    if kind not in (0, stat.S_IFDIR if is_folder else stat.S_IFREG):
        # pip would write the link's target into a plain file, which is certainly not what its publisher meant.
        what = "a symbolic link" if kind == stat.S_IFLNK else "not the file or folder that its name says"
        raise wheel.fault(item.filename, f"it is {what}, which no installer makes from a wheel")


def _require_sane_sizes(wheel: Wheel, members: Iterable[zipfile.ZipInfo]) -> None:
    total, own = 0, wheel.path.stat().st_size
    for item in members:
        total += item.file_size
        if item.file_size > item.compress_size * _DEFLATE_RATIO + _DEFLATE_RATIO:
            raise wheel.fault(item.filename, "it claims to unpack to more than is possible")
        if item.compress_type == zipfile.ZIP_STORED and item.file_size != item.compress_size:
            raise wheel.fault(item.filename, "it is stored, and yet has two sizes")
        if total > own * MOST_RATIO + _FREE_BYTES:
            raise wheel.fault(item.filename, f"with it, the wheel unpacks to more than {MOST_RATIO} times its size")


def _ends(archive: zipfile.ZipFile) -> dict[int, int]:
    """Return for each header's offset where the next one begins, or the directory."""
    starts = sorted({item.header_offset for item in archive.infolist()})
    return dict(zip(starts, (*starts[1:], archive.start_dir), strict=True))


def _raw_name(item: zipfile.ZipInfo) -> bytes:
    name = item.orig_filename
    return name.encode("utf-8" if name.isascii() or item.flag_bits & _UTF_8 else "cp437")


def _compared(wheel: Wheel, item: zipfile.ZipInfo, raw: bytes, header: bytes) -> int:
    """Return how long a member's header is, once it says the same as the directory."""
    if len(header) < _LOCAL.size + len(raw):
        raise wheel.fault(item.filename, "the zip ends inside its header")
    signature, _, flags, method, _, _, crc, packed, size, name_bytes, extra_bytes = _LOCAL.unpack_from(header)
    if signature != _LOCAL_SIGNATURE or header[_LOCAL.size :] != raw or name_bytes != len(raw):
        raise wheel.fault(item.filename, "the header before it is another member's")
    if method != item.compress_type or flags & _ENCRYPTED:
        raise wheel.fault(item.filename, "its header and the zip's directory disagree on its compression")
    is_same = packed in (item.compress_size, _IN_EXTRA) and size in (item.file_size, _IN_EXTRA) and crc == item.CRC
    if not is_same and not flags & _HAS_DESCRIPTOR:
        raise wheel.fault(item.filename, "its header and the zip's directory disagree on its size or CRC-32")
    return _LOCAL.size + int(name_bytes) + int(extra_bytes)
