"""Wheel -> the files that pip would leave on disk, as entries of a layer."""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from email.parser import HeaderParser
from typing import Final, Literal

from lj_image.builders.oci.entries import EXECUTABLE_MODE, FILE_MODE, File, Written, ZipMember
from lj_image.builders.oci.scheme import Scheme
from lj_image.builders.oci.wheel import scripts
from lj_image.builders.oci.wheel.members import files_of, is_executable, offsets, opened, time_of
from lj_image.builders.oci.wheel.record import Row, parse, written
from lj_image.builders.oci.wheel.wheel import Wheel
from lj_image.catalog.names import normalised

INSTALLER: Final = b"lj-image\n"
_SIGNATURES: Final = ("RECORD", "RECORD.jws", "RECORD.p7s")
"""Files of which RECORD need not say anything."""
_OURS: Final = ("INSTALLER", "REQUESTED", "direct_url.json")
"""Files that an installer writes, whatever the wheel has under their names."""
_LARGEST_METADATA_BYTES: Final = 64 * 1024 * 1024

Bytecode = Literal["none", "unchecked-hash"]


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
        content = _read(self.wheel, self.archive, item)
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
        newest = max(map(time_of, source.files))
        rows: list[Row] = []
        for item, offset in zip(source.files, offsets(wheel, archive, source.files), strict=True):
            file = _installed_member(source, item, offset, scheme, points)
            rows += _rows_of(source, item, file, scheme)
            if file is not None:
                yield file
        made = [*_made(source, scheme, points, newest)]
        if bytecode == "unchecked-hash":
            from lj_image.builders.oci.wheel.bytecode import compiled

            yield from _with_rows(compiled(source.wheel, archive, scheme, newest), rows, scheme, hashed=False)
        yield from _with_rows(made, rows, scheme, hashed=True)
        path = f"{scheme.site_packages}/{source.info}/RECORD"
        rows.append(Row(_record_path(path, scheme)))
        yield File(path, FILE_MODE, newest, Written(written(rows)), wheel.file)


def _with_rows(files: Iterable[File], rows: list[Row], scheme: Scheme, *, hashed: bool) -> Iterator[File]:
    for file in files:
        assert isinstance(file.content, Written)
        path = _record_path(file.path, scheme)
        rows.append(Row.of(path, file.content.content) if hashed else Row(path))
        yield file


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
    if not version.startswith("1."):
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


def _entry_points(source: _Opened) -> Mapping[str, str]:
    name = f"{source.info}/entry_points.txt"
    return scripts.entry_points(source.wheel, name, source.read(name)) if source.has(name) else {}


def _installed_member(
    source: _Opened, item: zipfile.ZipInfo, offset: int, scheme: Scheme, points: Mapping[str, str]
) -> File | None:
    """Return where a member goes; None for what is made anew."""
    name = item.filename
    folder, _, base = name.partition("/")
    mode = EXECUTABLE_MODE if is_executable(item) else FILE_MODE
    content: ZipMember | Written = ZipMember(
        source.wheel.path,
        name,
        offset,
        item.compress_size,
        item.file_size,
        item.CRC,
        item.compress_type == zipfile.ZIP_STORED,
        _promised(source, item),
    )
    if folder == source.info and base in (*_OURS, "RECORD"):
        return None
    if not folder.endswith(".data"):
        path = f"{scheme.site_packages}/{name}"
    else:
        key, _, rest = base.partition("/")
        path = f"{_data_folder(source, name, key, rest, scheme)}/{rest}"
        if key == "scripts":
            if scripts.is_wrapper(posixpath.basename(rest), points):
                return None
            if _begins_with_placeholder(source, item):
                content = Written(scripts.rewritten(source.read(name), scheme))
    return File(path, mode, time_of(item), content, source.wheel.file)


def _promised(source: _Opened, item: zipfile.ZipInfo) -> bytes | None:
    """Return the digest that RECORD has of a member; raises BuildError where its size is another one."""
    row = source.rows.get(item.filename)
    if row is None or item.filename.removeprefix(f"{source.info}/") in _SIGNATURES:
        return None
    if row.size and row.size != str(item.file_size):
        raise source.wheel.fault(
            item.filename, f"RECORD says that it has {row.size} bytes, and it has {item.file_size}"
        )
    return row.sha256(source.wheel, item.filename)


def _data_folder(source: _Opened, name: str, key: str, rest: str, scheme: Scheme) -> str:
    folders = {
        "purelib": scheme.site_packages,
        "platlib": scheme.site_packages,
        "scripts": scheme.scripts,
        "headers": f"{scheme.headers}/{source.wheel.distribution}",
        "data": scheme.prefix,
    }
    if key not in folders or not rest:
        raise source.wheel.fault(name, f"no installer knows the place {key!r}; known: {', '.join(sorted(folders))}")
    return folders[key]


def _begins_with_placeholder(source: _Opened, item: zipfile.ZipInfo) -> bool:
    if item.file_size < len(scripts.PLACEHOLDER):
        return False
    try:
        with source.archive.open(item) as file:
            return file.read(len(scripts.PLACEHOLDER)) == scripts.PLACEHOLDER
    except Exception as error:  # whatever damaged bytes do to zipfile and zlib
        raise source.wheel.fault(item.filename, f"it cannot be read ({error})") from None


def _rows_of(source: _Opened, item: zipfile.ZipInfo, file: File | None, scheme: Scheme) -> tuple[Row, ...]:
    row = source.rows.get(item.filename)
    if file is None:
        # Of a script that gives way to a generated one, pip keeps the row as it was. What we write has rows of its own.
        return (row,) if row is not None and not item.filename.startswith(f"{source.info}/") else ()
    path = _record_path(file.path, scheme)
    if isinstance(file.content, Written):
        return (Row.of(path, file.content.content),)
    return (Row(path, row.hash, row.size) if row else Row(path),)


def _record_path(path: str, scheme: Scheme) -> str:
    """Return a path as RECORD has it, relative to the site-packages."""
    inside = path.removeprefix(f"{scheme.site_packages}/")
    return inside if inside != path else posixpath.relpath(f"/{path}", f"/{scheme.site_packages}")


def _made(source: _Opened, scheme: Scheme, points: Mapping[str, str], mtime: int) -> Iterator[File]:
    owner, info = source.wheel.file, f"{scheme.site_packages}/{source.info}"
    for name, text in scripts.generated(points, scheme):
        yield File(f"{scheme.scripts}/{name}", EXECUTABLE_MODE, mtime, Written(text), owner)
    yield File(f"{info}/INSTALLER", FILE_MODE, mtime, Written(INSTALLER), owner)
    # Asked for by name, as the requirements file of the docker builder asks for each.
    yield File(f"{info}/REQUESTED", FILE_MODE, mtime, Written(b""), owner)


def _read(wheel: Wheel, archive: zipfile.ZipFile, item: zipfile.ZipInfo) -> bytes:
    if item.file_size > _LARGEST_METADATA_BYTES:
        raise wheel.fault(item.filename, f"it has {item.file_size:,} bytes, too many for what it is")
    try:
        return archive.read(item)
    except Exception as error:  # whatever damaged bytes do to zipfile and zlib
        raise wheel.fault(item.filename, f"it cannot be read ({error})") from None
