"""Walks a tar stream forward: each member's name, kind and content, nothing kept.

Python's `tarfile` in stream mode copies its buffer at every small read, five times slower on layers of many files.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from lj_image.oci.streams import BLOCK_BYTES, Readable

# POSIX.1-2017, pax interchange format, ustar header block; and GNU tar's two additions for long names.
_RECORD_BYTES: Final = 512
_HEADER: Final = struct.Struct("100s 8s 8s 8s 12s 12s 8s 1s 100s 6s 2s 32s 32s 8s 8s 155s 12x".replace(" ", ""))
_FILES: Final = frozenset((b"0", b"\0", b"7"))
_FOLDER: Final = b"5"
_LINKS: Final = frozenset((b"1", b"2"))
_DEVICES: Final = frozenset((b"3", b"4"))
_CHECKSUM: Final = 6
_LONG_NAME: Final = b"L"
_LONG_LINK: Final = b"K"
_PAX: Final = b"x"
_PAX_GLOBAL: Final = b"g"
_LONGEST_NAMES_BYTES: Final = 1024 * 1024


class NotATarError(Exception):
    """The stream is something else, or ends too early."""


class Content:
    """The content of one member, while the walk stands at it."""

    def __init__(self, stream: Readable, size_bytes: int) -> None:
        self._stream = stream
        self.left_bytes = size_bytes

    def read(self, size: int) -> bytes:
        """Return the next bytes; none at the member's end."""
        wanted = min(size, self.left_bytes)
        block = self._stream.read(wanted) if wanted else b""
        if len(block) < wanted:
            raise NotATarError("it ends inside a file")
        self.left_bytes -= wanted
        return block


@dataclass(frozen=True, slots=True)
class Member:
    """One entry of a tar."""

    path: str
    """Without leading `./` or `/`, and without a slash at the end."""
    is_file: bool
    is_folder: bool
    link: str
    """What a link points to."""
    content: Content
    type: bytes
    """The header's typeflag, one byte."""
    mode: int
    """Permissions with set-uid, set-gid and sticky bit: the lowest twelve bits."""
    uid: int
    gid: int
    device: tuple[int, int]
    """Major and minor number of a device; (0, 0) of anything else."""
    pax: Mapping[str, str]
    """Keywords that a pax header gave for this member; bytes that are no UTF-8 are surrogates."""
    name: str
    """As it stands in the tar: with `./`, `/` and a slash at the end."""
    mtime: int
    """In seconds since 1970, rounded down."""


def walk(stream: Readable) -> Iterator[Member]:
    """Yield the members of a tar; each one's content can be read until the next is asked for.

    Raises NotATarError where the stream is none.
    """
    overrides: dict[str, str] = {}
    while (header := stream.read(_RECORD_BYTES)) and header.count(0) != _RECORD_BYTES:
        fields = _fields(header)
        kind, size, name, link = _parse(fields)
        if kind in (_PAX, _PAX_GLOBAL, _LONG_NAME, _LONG_LINK):
            text = _names(stream, size)
            if kind != _PAX_GLOBAL:
                overrides |= _override(kind, text)
            continue
        size = _decimal(overrides, "size", size) if kind != _FOLDER and kind not in _LINKS else 0
        content = Content(stream, size)
        path, link = overrides.get("path", name), overrides.get("linkpath", link)
        stated = _stated(fields, overrides)
        overrides = {}
        tidy, mtime = path.removeprefix("./").strip("/"), _time(fields, stated[-1])
        yield Member(tidy, kind in _FILES, kind == _FOLDER, link, content, kind, *stated, path, mtime)
        while content.read(BLOCK_BYTES):
            pass
        stream.read(-size % _RECORD_BYTES)


def _fields(header: bytes) -> tuple[bytes, ...]:
    if len(header) < _RECORD_BYTES:
        raise NotATarError("it ends inside a header")
    fields = _HEADER.unpack(header)
    checksum = fields[_CHECKSUM]
    # The sum of all bytes with the checksum's own field taken as spaces.
    if sum(header) - sum(checksum) + 8 * 0x20 != _number(checksum):
        raise NotATarError("a header's checksum is wrong")
    return fields


def _parse(fields: tuple[bytes, ...]) -> tuple[bytes, int, str, str]:
    name, size, kind, link, magic, prefix = (fields[at] for at in (0, 4, 7, 8, 9, 15))
    path = _text(name)
    if magic == b"ustar\0" and prefix[0]:
        path = f"{_text(prefix)}/{path}"
    return kind, _number(size), path, _text(link)


def _stated(
    fields: tuple[bytes, ...], overrides: Mapping[str, str]
) -> tuple[int, int, int, tuple[int, int], Mapping[str, str]]:
    """Return mode, owner, group, device and the pax keywords of a member."""
    mode, uid, gid = (_number(fields[at]) for at in (1, 2, 3))
    device = (_number(fields[13]), _number(fields[14])) if fields[7] in _DEVICES else (0, 0)
    return mode & 0o7777, _decimal(overrides, "uid", uid), _decimal(overrides, "gid", gid), device, overrides


def _time(fields: tuple[bytes, ...], overrides: Mapping[str, str]) -> int:
    """Return the time of the last change; one before 1970 counts as 1970."""
    stated = overrides.get("mtime")
    if stated is None:
        return 0 if fields[5][0] == 0xFF else _number(fields[5])  # GNU: a negative number begins so
    return 0 if stated.startswith("-") else _decimal({"mtime": stated.partition(".")[0]}, "mtime", 0)


def _decimal(overrides: Mapping[str, str], keyword: str, otherwise: int) -> int:
    """Return a number that pax gives in decimal digits, or else the header's."""
    stated = overrides.get(keyword)
    if stated is None:
        return otherwise
    if not (stated.isascii() and stated.isdigit() and len(stated) < 20):
        raise NotATarError("a number in a pax record is none")
    return int(stated)


def _number(field: bytes) -> int:
    if field[0] & 0x80:  # GNU: larger than octal digits can say, so binary
        return int.from_bytes(field, "big") & ((1 << (8 * len(field) - 1)) - 1)
    try:
        return int(field.rstrip(b" \0").lstrip() or b"0", 8)
    except ValueError:
        raise NotATarError("a number in a header is none") from None


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode(errors="surrogateescape")


def _names(stream: Readable, size: int) -> bytes:
    if size > _LONGEST_NAMES_BYTES:
        raise NotATarError("a name is longer than any file system allows")
    text = Content(stream, size).read(size)
    stream.read(-size % _RECORD_BYTES)
    return text


def _override(kind: bytes, text: bytes) -> Mapping[str, str]:
    if kind == _LONG_NAME:
        return {"path": _text(text)}
    if kind == _LONG_LINK:
        return {"linkpath": _text(text)}
    return dict(_pax_records(text))


def _pax_records(text: bytes) -> Iterator[tuple[str, str]]:
    """Yield the keywords of `25 path=some/where\\n`, where the number counts itself."""
    while text:
        length, _, _ = text.partition(b" ")
        if not length.isdigit() or int(length) == 0:
            raise NotATarError("a pax record is damaged")
        record, text = text[len(length) + 1 : int(length) - 1], text[int(length) :]
        keyword, _, value = record.partition(b"=")
        yield keyword.decode(errors="surrogateescape"), value.decode(errors="surrogateescape")
