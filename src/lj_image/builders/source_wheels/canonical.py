"""A wheel -> the same files in a zip on which no tool, clock, umask or library of the building machine has left a mark.

Order and compression of what build backends write depend on their version, on the order of a folder and on the zlib
that a Python is linked with, so that the same files would have another digest on every machine. Requirements may be
listed in the order of a set, which is another one in each Python; setuptools as Debian has it sorts them, its own
does not.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path
from typing import BinaryIO, Final

import deflate

from lj_image.errors import BuildError

LEVEL: Final = 6
"""libdeflate's balance: higher levels gain a hundredth for twice the time."""
COMPRESSED_BYTES: Final = 64 * 1024 * 1024
"""A file up to this size is compressed, which takes all of it in memory; a larger one is stored as it is."""
_COPY_BYTES: Final = 1024 * 1024
_REQUIREMENT: Final = b"Requires-Dist:"
# PKWARE APPNOTE 6.3.3: §4.3.7 local file header, §4.3.12 central directory header, §4.3.16 end of central directory.
_LOCAL: Final = struct.Struct("<4s5H3L2H")
_CENTRAL: Final = struct.Struct("<4s6H3L5H2L")
_END: Final = struct.Struct("<4s4H2LH")
_NEEDED: Final = 20  # §4.4.3.2: deflate, and nothing newer
_MADE_BY: Final = 3 << 8 | _NEEDED  # §4.4.2.1: the upper half of the attributes is a mode of UNIX
_UTF8: Final = 1 << 11  # §4.4.4, bit 11
_DATE: Final = 1 << 5 | 1  # §4.4.6: 1980-01-01; its midnight is 0
_METHOD: Final = {False: 0, True: 8}
_REGULAR: Final = 0o100000
_MOST_FILES: Final = 0xFFFF - 1
_MOST_BYTES: Final = 0xFFFFFFFF - 1


@dataclass(frozen=True, slots=True)
class _Member:
    """What a zip says of a file."""

    name: bytes
    mode: int
    is_deflated: bool
    crc32: int
    compressed_bytes: int
    size_bytes: int
    at: int

    def local(self) -> bytes:
        return _LOCAL.pack(b"PK\3\4", *self._facts(), len(self.name), 0) + self.name

    def central(self) -> bytes:
        rest = (len(self.name), 0, 0, 0, 0, (_REGULAR | self.mode) << 16, self.at)
        return _CENTRAL.pack(b"PK\1\2", _MADE_BY, *self._facts(), *rest) + self.name

    def _facts(self) -> tuple[int, ...]:
        flags = 0 if self.name.isascii() else _UTF8
        sizes = (self.compressed_bytes, self.size_bytes)
        return (_NEEDED, flags, _METHOD[self.is_deflated], 0, _DATE, self.crc32, *sizes)


@dataclass(slots=True)
class _Zip:
    """A zip that is being written."""

    target: BinaryIO
    members: list[_Member] = field(default_factory=list)

    def add(self, name: str, mode: int, content: bytes) -> None:
        """Add a file, compressed where that makes it smaller."""
        packed = deflate.deflate_compress(content, LEVEL)
        is_deflated = len(packed) < len(content)
        body = packed if is_deflated else content
        self._begin(name, mode, is_deflated, zlib.crc32(content), len(body), len(content))
        self.target.write(body)

    def add_stored(self, name: str, mode: int, crc32: int, size_bytes: int) -> None:
        """Begin a file whose content the caller writes as it is."""
        self._begin(name, mode, False, crc32, size_bytes, size_bytes)

    def _begin(self, name: str, mode: int, is_deflated: bool, crc32: int, packed_bytes: int, size_bytes: int) -> None:
        member = _Member(name.encode(), mode, is_deflated, crc32, packed_bytes, size_bytes, self.target.tell())
        if max(member.at + packed_bytes, size_bytes) > _MOST_BYTES or len(self.members) == _MOST_FILES:
            raise BuildError(f"{name}: the wheel is too large to be written anew", hint="build with: --builder docker")
        self.members.append(member)
        self.target.write(member.local())

    def finish(self) -> None:
        """Write the directory."""
        at = self.target.tell()
        for member in self.members:
            self.target.write(member.central())
        count = len(self.members)
        self.target.write(_END.pack(b"PK\5\6", 0, 0, count, count, self.target.tell() - at, at, 0))


def write_canonical(wheel: Path, target: BinaryIO) -> None:
    """Write a wheel anew: files and requirements sorted, `.dist-info` last, RECORD right, times and modes fixed.

    A mode is 0755 where the wheel has any right to execute, else 0644: installers look at nothing else. Raises
    BuildError for a file that is no wheel, or too large for a zip without extensions.
    """
    try:
        with zipfile.ZipFile(wheel) as source:
            _write(source, _Zip(target), wheel.name)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise BuildError(f"{wheel.name} cannot be read: {error}", hint="the build of its source wrote it") from None


def _write(source: zipfile.ZipFile, written: _Zip, wheel: str) -> None:
    files = {item.filename: item for item in source.infolist() if not item.is_dir()}
    folder = _dist_info(files, wheel)
    record, metadata = f"{folder}/RECORD", f"{folder}/METADATA"
    # Binary distribution format, "Signed wheel files": RECORD does not name its signatures.
    unnamed = {f"{record}.jws", f"{record}.p7s"}
    rows = []
    for name in sorted(files.keys() - {record}, key=lambda name: (".dist-info/" in name, name)):
        is_metadata = name == metadata
        digest, size_bytes = _copy(source, files[name], written, with_sorted_requirements if is_metadata else None)
        rows += [] if name in unnamed else [(name, digest, str(size_bytes))]
    written.add(record, 0o644, _text([*rows, (record, "", "")]))
    written.finish()


def _dist_info(files: Iterable[str], wheel: str) -> str:
    """Return the folder of a wheel's metadata; raises BuildError unless there is one."""
    folders = {name.partition("/")[0] for name in files if name.partition("/")[0].endswith(".dist-info")}
    if len(folders) != 1:
        raise BuildError(f"{wheel} has {len(folders)} folders .dist-info, not one")
    return folders.pop()


def _copy(
    source: zipfile.ZipFile, item: zipfile.ZipInfo, written: _Zip, change: Callable[[bytes], bytes] | None
) -> tuple[str, int]:
    """Copy a file, and return digest and size as RECORD has them; reading to the end checks its CRC."""
    mode = 0o755 if item.external_attr >> 16 & 0o111 else 0o644
    if item.file_size <= COMPRESSED_BYTES:
        content = source.read(item)
        content = change(content) if change else content
        written.add(item.filename, mode, content)
        return _digest(hashlib.sha256(content).digest()), len(content)
    digest = hashlib.sha256()
    written.add_stored(item.filename, mode, item.CRC, item.file_size)
    with source.open(item) as file:
        for block in iter(lambda: file.read(_COPY_BYTES), b""):
            digest.update(block)
            written.target.write(block)
    return _digest(digest.digest()), item.file_size


def with_sorted_requirements(metadata: bytes) -> bytes:
    """Return core metadata whose neighbouring requirements are sorted: their order means nothing (multiple use).

    >>> with_sorted_requirements(b"Name: a\\nRequires-Dist: c\\nRequires-Dist: b\\n\\ntext")
    b'Name: a\\nRequires-Dist: b\\nRequires-Dist: c\\n\\ntext'
    """
    headers, blank, text = metadata.partition(b"\n\n")
    lines = headers.split(b"\n")
    if any(line.startswith((b" ", b"\t")) and before.startswith(_REQUIREMENT) for before, line in pairwise(lines)):
        return metadata  # one goes on in a second line, as no known tool writes it
    groups = groupby(lines, key=lambda line: line.startswith(_REQUIREMENT))
    settled = [line for is_requirement, group in groups for line in (sorted(group) if is_requirement else group)]
    return b"\n".join(settled) + blank + text


def _digest(found: bytes) -> str:
    return f"sha256={base64.urlsafe_b64encode(found).rstrip(b'=').decode()}"


def _text(rows: Iterable[tuple[str, str, str]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
