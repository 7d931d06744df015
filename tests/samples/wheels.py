"""Wheels, right by default, with every way to make one wrong; and what files an installation comes to.

The zip is written by hand, since `zipfile` refuses to write most faults. Layout: APPNOTE 4.3.
"""

from __future__ import annotations

import base64
import hashlib
import stat
import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from lj_image.builders.oci.entries import File, Written, ZipMember
from lj_image.builders.oci.scheme import Scheme
from lj_image.builders.oci.wheel.wheel import Wheel

FILE, LINK, FOLDER = stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR
STORED, DEFLATED = 0, 8
UNIX, WINDOWS = 3, 0
SITE: Final = "usr/local/lib/python3.11/dist-packages"
SCHEME: Final = Scheme(SITE, "usr/local", "3.11", "/usr/bin/python3", "23.0.1")
INFO: Final = "tiny-1.0.dist-info"
METADATA: Final = b"Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n"
WHEEL: Final = b"Wheel-Version: 1.0\nGenerator: by-hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


@dataclass(frozen=True, slots=True)
class Member:
    """One member; what follows `is_zip64` is a lie where it is given."""

    name: str
    content: bytes = b""
    mode: int = FILE | 0o644
    method: int = DEFLATED
    system: int = UNIX
    time: tuple[int, int, int, int, int, int] = (2024, 2, 29, 12, 30, 58)
    has_descriptor: bool = False
    is_zip64: bool = False
    flags: int = 0
    local_name: str | None = None
    """In the header before the content; the directory keeps `name`."""
    local_crc: int | None = None
    size: int | None = None
    """Of the content, in header and directory."""
    crc: int | None = None
    packed_size: int | None = None
    packed: bytes | None = None
    """The compressed bytes themselves."""


def archive(members: Iterable[Member], *, before: bytes = b"", after: bytes = b"", comment: bytes = b"") -> bytes:
    """Return a zip; `before` and `after` stand outside it."""
    body, directory, count = bytearray(before), bytearray(), 0
    for member in members:
        directory += _directory_row(member, len(body))
        body += _local(member)
        count += 1
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, count, count, len(directory), len(body), len(comment))
    return bytes(body + directory + end) + comment + after


def record(members: Iterable[Member], info: str = INFO) -> bytes:
    """Return the RECORD of members: a row of each, and one of its own."""
    rows = [row(member) for member in members if not member.name.endswith("/")]
    return "".join(f"{line}\n" for line in [*rows, f"{info}/RECORD,,"]).encode()


def row(member: Member) -> str:
    """Return a member's line in RECORD."""
    quoted = member.name.replace('"', '""')
    name = f'"{quoted}"' if set(member.name) & set(',"') else member.name
    return f"{name},{sha256(member.content)},{len(member.content)}"


def sha256(content: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def completed(members: Iterable[Member], info: str = INFO) -> list[Member]:
    """Add what a wheel must have and these members have not: METADATA, WHEEL and a RECORD of them all."""
    found = list(members)
    names = {member.name for member in found}
    metadata = METADATA.replace(b"tiny", info.partition("-")[0].encode())
    for name, content in (("METADATA", metadata), ("WHEEL", WHEEL)):
        if f"{info}/{name}" not in names:
            found.append(Member(f"{info}/{name}", content))
    if f"{info}/RECORD" not in names:
        found.append(Member(f"{info}/RECORD", record(found, info)))
    return found


def wheel(folder: Path, *members: Member, info: str = INFO) -> Wheel:
    """Write a wheel of these members, completed."""
    return written(folder, archive(completed(members, info)), f"{info.removesuffix('.dist-info')}-py3-none-any.whl")


def written(folder: Path, content: bytes, file: str = "tiny-1.0-py3-none-any.whl") -> Wheel:
    """Write a zip as it is."""
    path = folder / file
    path.write_bytes(content)
    return Wheel(path, file, hashlib.sha256(content).hexdigest())


def without(members: Iterable[Member], name: str) -> list[Member]:
    """Return the members but one."""
    return [member for member in members if member.name != name]


def changed(members: Iterable[Member], name: str, **lies: object) -> list[Member]:
    """Return the members, one of them with other fields; RECORD keeps what it says."""
    return [replace(member, **lies) if member.name == name else member for member in members]  # type: ignore[arg-type]


def content_of(file: File) -> bytes:
    """Return a file's bytes, inflated by zlib and held against all that is promised of them."""
    if isinstance(file.content, Written):
        return file.content.content
    assert isinstance(file.content, ZipMember)
    member = file.content
    raw = member.archive.read_bytes()[member.offset : member.offset + member.compressed_bytes]
    plain = raw if member.is_stored else zlib.decompress(raw, -15)
    assert len(plain) == member.size_bytes
    assert zlib.crc32(plain) == member.crc32
    assert member.sha256 in (None, hashlib.sha256(plain).digest())
    return plain


def tree(files: Iterable[File]) -> dict[str, tuple[int, bytes]]:
    """Return path -> mode and bytes."""
    found = {file.path: (file.mode, content_of(file)) for file in files}
    return dict(sorted(found.items()))


def _local(member: Member) -> bytes:
    name = (member.local_name or member.name).encode()
    packed = _packed(member)
    crc, packed_size, size = _sizes(member)
    if member.local_crc is not None:
        crc = member.local_crc
    extra, descriptor = b"", b""
    if member.has_descriptor:
        descriptor = struct.pack("<4s3I", b"PK\7\x08", crc, packed_size, size)
        crc = packed_size = size = 0
    elif member.is_zip64:
        extra = struct.pack("<HHQQ", 1, 16, size, packed_size)
        size = packed_size = 0xFFFFFFFF
    fields = (45, _flags(member), member.method, *_dos(member.time), crc, packed_size, size, len(name), len(extra))
    return struct.pack("<4s5H3I2H", b"PK\3\4", *fields) + name + extra + packed + descriptor


def _directory_row(member: Member, offset: int) -> bytes:
    name = member.name.encode()
    crc, packed_size, size = _sizes(member)
    extra = b""
    if member.is_zip64:
        extra = struct.pack("<HHQQ", 1, 16, size, packed_size)
        size = packed_size = 0xFFFFFFFF
    made_by = member.system << 8 | 45
    fields = (made_by, 45, _flags(member), member.method, *_dos(member.time), crc, packed_size, size)
    rest = (len(name), len(extra), 0, 0, 0, member.mode << 16, offset)
    return struct.pack("<4s6H3I5H2I", b"PK\1\2", *fields, *rest) + name + extra


def _sizes(member: Member) -> tuple[int, int, int]:
    crc = zlib.crc32(member.content) if member.crc is None else member.crc
    packed_size = len(_packed(member)) if member.packed_size is None else member.packed_size
    return crc, packed_size, len(member.content) if member.size is None else member.size


def _packed(member: Member) -> bytes:
    if member.packed is not None:
        return member.packed
    if member.method != DEFLATED:
        return member.content
    pack = zlib.compressobj(6, zlib.DEFLATED, -15)
    return pack.compress(member.content) + pack.flush()


def _flags(member: Member) -> int:
    return member.flags | (0 if member.name.isascii() else 0x800) | (0x8 if member.has_descriptor else 0)


def _dos(time: tuple[int, int, int, int, int, int]) -> tuple[int, int]:
    year, month, day, hour, minute, second = time
    return hour << 11 | minute << 5 | second // 2, (year - 1980) << 9 | month << 5 | day
