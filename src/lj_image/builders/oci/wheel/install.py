"""Wheel -> the files that pip would leave on disk, as entries of a layer."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from email.parser import HeaderParser
from typing import Final

from lj_image.builders.oci.entries import EXECUTABLE_MODE, FILE_MODE, File, Written, ZipMember
from lj_image.builders.oci.scheme import Scheme
from lj_image.builders.oci.wheel import scripts
from lj_image.builders.oci.wheel.members import files_of, is_executable, offsets, opened, read_member, time_of
from lj_image.builders.oci.wheel.places import Places, script_name
from lj_image.builders.oci.wheel.record import Row, parse, written
from lj_image.builders.oci.wheel.wheel import Wheel
from lj_image.catalog.names import normalised
from lj_image.catalog.release import Bytecode

INSTALLER: Final = b"lj-image\n"
_SIGNATURES: Final = ("RECORD", "RECORD.jws", "RECORD.p7s")
"""Files of which RECORD need not say anything."""
_OURS: Final = ("INSTALLER", "REQUESTED", "direct_url.json")
"""Files that an installer writes, whatever the wheel has under their names."""
_KNOWN_VERSION: Final = re.compile(r"1(\.\d+)*")


@dataclass(frozen=True, slots=True)
class _Opened:
    """A wheel whose directory was read and found in order."""

    wheel: Wheel
    archive: zipfile.ZipFile
    info: str
    """The name of its dist-info folder."""
    files: tuple[zipfile.ZipInfo, ...]
    rows: Mapping[str, Row]

    def read(self, name: str) -> bytes:
        """Return a small member, held against RECORD; raises BuildError."""
        item = self.archive.getinfo(name)
        content = read_member(self.wheel, self.archive, item)
        if self.rows and name in self.rows and self.rows[name] != Row.of(name, content):
            row = self.rows[name]
            if row.sha256(self.wheel, name) != Row.of(name, content).sha256(self.wheel, name):
                raise self.wheel.fault(name, "its content is not what RECORD promises")
        return content

    def has(self, name: str) -> bool:
        return name in self.archive.NameToInfo


def installed(wheel: Wheel, scheme: Scheme, *, bytecode: Bytecode = "none") -> Iterator[File]:
    """Yield the files of an installed wheel: its own in the order of the archive, then those that are made here.

    Raises BuildError, naming wheel and member, for what pip would refuse, for what could do harm in a layer, and for
    promises of RECORD that cannot hold.
    """
    with opened(wheel) as archive:
        source = _inspected(wheel, archive)
        points = _entry_points(source)
        places = Places(wheel, scheme)
        rows: list[Row] = []
        newest = max(map(time_of, source.files))
        sources: list[File] = []
        for file in _members(source, scheme, points, places, rows):
            if bytecode != "none" and file.path.endswith(".py"):
                sources.append(file)
            yield file
        if sources:
            from lj_image.builders.oci.wheel.bytecode import compiled

            for file in compiled(wheel, archive, scheme, newest, sources):
                if not places.is_taken(file.path):  # a wheel that brings its own keeps them
                    rows.append(Row(places.in_record(file.path)))
                    yield file
        for file in _made(source, scheme, points, newest):
            places.require_free(file.path)
            rows.append(Row.of(places.in_record(file.path), _content(file)))
            yield file
        path = f"{scheme.site_packages}/{source.info}/RECORD"
        places.require_free(path)
        rows.append(Row(places.in_record(path)))
        yield File(path, FILE_MODE, newest, Written(written(rows)), wheel.file)


def _inspected(wheel: Wheel, archive: zipfile.ZipFile) -> _Opened:
    files = files_of(wheel, archive)
    info = _info_folder(wheel, files)
    draft = _Opened(wheel, archive, info, files, {})
    for name in ("METADATA", "WHEEL", "RECORD"):
        if not draft.has(f"{info}/{name}"):
            raise wheel.fault("", f"it has no {info}/{name}")
    rows = parse(wheel, f"{info}/RECORD", draft.read(f"{info}/RECORD"))
    source = _Opened(wheel, archive, info, files, rows)
    _require_known_version(source)
    _require_complete(source)
    return source


def _info_folder(wheel: Wheel, files: Iterable[zipfile.ZipInfo]) -> str:
    """Return the one dist-info folder, which must be that of the distribution in the wheel's name."""
    tops = {item.filename.partition("/")[0] for item in files if ".dist-info/" in item.filename}
    found = sorted(top for top in tops if top.endswith(".dist-info"))
    if len(found) != 1:
        raise wheel.fault(
            "", f"it has {len(found)} dist-info folders, not one{': ' if found else ''}{', '.join(found)}"
        )
    name = found[0].removesuffix(".dist-info").partition("-")[0]
    if normalised(name) != wheel.distribution:
        raise wheel.fault(found[0], f"it belongs to {name}, not to {wheel.distribution}")
    return found[0]


def _require_known_version(source: _Opened) -> None:
    """Refuse another major version of the format, as the format asks of installers."""
    name = f"{source.info}/WHEEL"
    headers = HeaderParser().parsestr(source.read(name).decode(errors="replace"))
    version = str(headers.get("Wheel-Version", "")).strip()
    if not _KNOWN_VERSION.fullmatch(version):
        raise source.wheel.fault(name, f"Wheel-Version is {version or 'missing'}, and 1.x is known")


def _require_complete(source: _Opened) -> None:
    """Refuse a member that RECORD does not list, and a row that no member stands for."""
    ours = {f"{source.info}/{name}" for name in (*_SIGNATURES, *_OURS)}
    names = {item.filename for item in source.files}
    for name in names:
        if name not in source.rows and name not in ours:
            raise source.wheel.fault(name, "RECORD does not list it")
    for path in source.rows:
        if path not in names and path not in ours and not path.endswith("/"):
            raise source.wheel.fault(path, "RECORD lists it, and it is not there")


def _entry_points(source: _Opened) -> scripts.EntryPoints:
    name = f"{source.info}/entry_points.txt"
    return scripts.entry_points(source.wheel, name, source.read(name)) if source.has(name) else scripts.EntryPoints()


def _members(
    source: _Opened, scheme: Scheme, points: scripts.EntryPoints, places: Places, rows: list[Row]
) -> Iterator[File]:
    """Yield the files that come out of the wheel, and add their rows."""
    ours = {f"{source.info}/{name}" for name in (*_OURS, "RECORD")}
    for item, offset in zip(source.files, offsets(source.wheel, source.archive, source.files), strict=True):
        name = item.filename
        if name in ours:
            continue
        row = source.rows.get(name)
        script = script_name(name) if ".data/" in name else None
        if script is not None and scripts.is_wrapper(script, points):
            rows += [row] if row else []  # which pip keeps as it was, though the script gives way to a generated one
            continue
        path = places.take(name)
        content: ZipMember | Written = _zip_member(source, item, offset, row)
        in_record = places.in_record(path)
        if script is not None and _begins_with_placeholder(source, item):
            content = Written(scripts.rewritten(source.read(name), scheme))
            rows.append(Row.of(in_record, content.content))
        elif row is None:
            rows.append(Row(in_record))
        else:
            rows.append(row if in_record == name else Row(in_record, row.hash, row.size))
        yield File(
            path, EXECUTABLE_MODE if is_executable(item) else FILE_MODE, time_of(item), content, source.wheel.file
        )


def _zip_member(source: _Opened, item: zipfile.ZipInfo, offset: int, row: Row | None) -> ZipMember:
    return ZipMember(
        source.wheel.path,
        item.filename,
        offset,
        item.compress_size,
        item.file_size,
        item.CRC,
        item.compress_type == zipfile.ZIP_STORED,
        _promised(source, item, row),
    )


def _promised(source: _Opened, item: zipfile.ZipInfo, row: Row | None) -> bytes | None:
    """Return the digest that RECORD has of a member; raises BuildError where its size is another one."""
    folder, _, name = item.filename.partition("/")
    if row is None or (folder == source.info and name in _SIGNATURES):  # not licenses/RECORD, nor RECORD elsewhere
        return None
    if row.size and row.size != str(item.file_size):
        raise source.wheel.fault(
            item.filename, f"RECORD says that it has {row.size} bytes, and it has {item.file_size}"
        )
    return row.sha256(source.wheel, item.filename)


def _begins_with_placeholder(source: _Opened, item: zipfile.ZipInfo) -> bool:
    if item.file_size < len(scripts.PLACEHOLDER):
        return False
    try:
        with source.archive.open(item) as file:
            return file.read(len(scripts.PLACEHOLDER)) == scripts.PLACEHOLDER
    except Exception as error:  # whatever damaged bytes do to zipfile and zlib
        raise source.wheel.fault(item.filename, f"it cannot be read ({error})") from None


def _made(source: _Opened, scheme: Scheme, points: scripts.EntryPoints, mtime: int) -> Iterator[File]:
    owner, info = source.wheel.file, f"{scheme.site_packages}/{source.info}"
    for name, text in scripts.generated(points, scheme):
        yield File(f"{scheme.scripts}/{name}", EXECUTABLE_MODE, mtime, Written(text), owner)
    yield File(f"{info}/INSTALLER", FILE_MODE, mtime, Written(INSTALLER), owner)
    # Asked for by name, as the requirements file of the docker builder asks for each.
    yield File(f"{info}/REQUESTED", FILE_MODE, mtime, Written(b""), owner)


def _content(file: File) -> bytes:
    assert isinstance(file.content, Written)
    return file.content.content
