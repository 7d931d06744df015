"""A zip -> entries, as `unzip.py` leaves them in a build: its members' compressed bytes are taken as they are."""

from __future__ import annotations

import calendar
import posixpath
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Final

from lj_image import unzip
from lj_image.builders.oci.decompression import TOO_LARGE, TranslatedReader, size_limit_bytes
from lj_image.builders.oci.entries import (
    EARLIEST_TIME,
    FILE_MODE,
    FOLDER_MODE,
    Entry,
    File,
    Folder,
    Streamed,
    Symlink,
    ZipMember,
)
from lj_image.catalog.release import ArchiveSource
from lj_image.errors import BuildError

# APPNOTE 4.3.7: signature, 22 bytes that the directory has as well, lengths of the name and of the extra field.
_LOCAL_HEADER: Final = struct.Struct("<4s22xHH")
_LOCAL_SIGNATURE: Final = b"PK\x03\x04"
_ENCRYPTED: Final = 0x1
_LONGEST_LINK_BYTES: Final = 4096
"""PATH_MAX: no system follows a longer one."""
_FAULTS: Final = (OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error)
_HINT: Final = "build with --builder docker, or let the archive be made anew without it"


def zip_entries(path: Path, source: ArchiveSource) -> Iterator[Entry]:
    """Yield the entries of a zip: folders, then files, then links, so that none is below a link; raises BuildError."""
    try:
        with zipfile.ZipFile(path) as pack, path.open("rb") as file:
            members = _members(pack, path, source)
            for below, item in sorted(members.items(), key=_rank):
                yield from _entry(pack, file, posixpath.join(source.path.strip("/"), below), item, source.file)
    except unzip.Refused as refusal:
        raise BuildError(f"{source.file}: {refusal}", hint=_HINT) from None
    except _FAULTS as error:
        raise BuildError(
            f"{source.file}: cannot be read as a zip: {error or 'it ends too early'}",
            hint="the file is not what its name says, or was damaged before it was locked",
        ) from None


def _members(pack: zipfile.ZipFile, path: Path, source: ArchiveSource) -> Mapping[str, zipfile.ZipInfo]:
    """Return what is to be unpacked by its path; raises Refused for what is no plain member, and for a bomb."""
    found = unzip.members(pack, source.strip_components)
    archive_bytes = path.stat().st_size
    if sum(item.compress_size for item in found.values()) > archive_bytes:
        raise BuildError(f"{source.file}: its members lie over each other", hint=_HINT)
    if sum(item.file_size for item in found.values()) > size_limit_bytes(archive_bytes):
        raise BuildError(f"{source.file}: {TOO_LARGE}", hint=_HINT)
    for below, item in found.items():
        if any(part.startswith(".wh.") for part in below.split("/")):
            raise unzip.Refused(item.filename, "a name that deletes files in a layer")
    return found


def _rank(member: tuple[str, zipfile.ZipInfo]) -> tuple[bool, bool, int | str]:
    """Folders by path, then files as they lie in the archive, then links."""
    below, item = member
    return _is_link(item), not item.is_dir(), below if item.is_dir() else item.header_offset


def _entry(pack: zipfile.ZipFile, file: IO[bytes], path: str, item: zipfile.ZipInfo, owner: str) -> Iterator[Entry]:
    mode = stat.S_IMODE(item.external_attr >> 16)
    if item.is_dir():
        yield Folder(path, mode or FOLDER_MODE, _time(item), owner)
    elif item.flag_bits & _ENCRYPTED:
        raise unzip.Refused(item.filename, "is encrypted")
    elif _is_link(item):
        if item.file_size > _LONGEST_LINK_BYTES:
            raise unzip.Refused(item.filename, "a link to a path that is longer than any")
        yield Symlink(path, pack.read(item).decode(), _time(item), owner)
    elif item.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        yield File(path, mode or FILE_MODE, _time(item), _spliced(file, item, Path(str(pack.filename))), owner)
    else:
        with _opened(pack, item) as reader:
            told = TranslatedReader(
                reader, lambda error: BuildError(f"{owner}: {item.filename!r}: {error}", hint=_HINT)
            )
            yield File(path, mode or FILE_MODE, _time(item), Streamed(item.file_size, told), owner)


def _is_link(item: zipfile.ZipInfo) -> bool:
    return not item.is_dir() and stat.S_ISLNK(item.external_attr >> 16)


def _spliced(file: IO[bytes], item: zipfile.ZipInfo, archive: Path) -> ZipMember:
    """Return where a member's bytes lie; only its own header, before them, says how long that is."""
    file.seek(item.header_offset)
    header = file.read(_LOCAL_HEADER.size)
    if len(header) < _LOCAL_HEADER.size or not header.startswith(_LOCAL_SIGNATURE):
        raise unzip.Refused(item.filename, "its own header is not where the directory says")
    _, name_bytes, extra_bytes = _LOCAL_HEADER.unpack(header)
    return ZipMember(
        archive=archive,
        name=item.filename,
        offset=item.header_offset + _LOCAL_HEADER.size + name_bytes + extra_bytes,
        compressed_bytes=item.compress_size,
        size_bytes=item.file_size,
        crc32=item.CRC,
        is_stored=item.compress_type == zipfile.ZIP_STORED,
    )


def _opened(pack: zipfile.ZipFile, item: zipfile.ZipInfo) -> IO[bytes]:
    try:
        return pack.open(item)
    except NotImplementedError:
        raise unzip.Refused(item.filename, f"packed by the method {item.compress_type}, which is not known") from None


def _time(item: zipfile.ZipInfo) -> int:
    """A zip has no zone, and UTC is the same everywhere; one made on Windows may hold month 0."""
    try:
        return max(EARLIEST_TIME, calendar.timegm((*item.date_time, 0, 0, 0)))
    except ValueError:
        return EARLIEST_TIME
