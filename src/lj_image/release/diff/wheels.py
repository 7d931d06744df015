"""What a wheel, or a source distribution, says of itself without being unpacked: METADATA, and RECORD's files."""

from __future__ import annotations

import base64
import binascii
import csv
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

from lj_image.errors import ArtifactError
from lj_image.release.diff.contents import FileFact

_SCHEMES = {"purelib": "", "platlib": "", "scripts": "bin/", "headers": "include/", "data": ""}
"""Folder of `<name>.data` (PEP 427) -> where it goes below the prefix, or the packages' folder for the first two."""


def metadata(wheel: Path, file: str) -> str:
    """Return the text of METADATA; raises ArtifactError for a file that is no wheel."""
    return _member(wheel, file, "METADATA").decode(errors="replace")


def sdist_metadata(sdist: Path, file: str) -> str:
    """Return the text of PKG-INFO; raises ArtifactError for a file that is no source distribution."""
    import tarfile

    try:
        with tarfile.open(sdist) as archive:
            found = next(item for item in archive if item.name.endswith("/PKG-INFO") and item.name.count("/") == 1)
            content = archive.extractfile(found)
            return content.read().decode(errors="replace") if content else ""
    except (tarfile.TarError, StopIteration, OSError) as error:
        raise _unreadable(sdist, file, error) from None


def recorded_files(wheel: Path, file: str, site_packages: str) -> dict[str, FileFact]:
    """Return path -> file as RECORD lists them, at the places where they are installed; see `metadata`."""
    rows = csv.reader(io.StringIO(_member(wheel, file, "RECORD").decode()))
    site = site_packages.strip("/")
    return dict(_facts(rows, site))


def _facts(rows: Iterator[list[str]], site: str) -> Iterator[tuple[str, FileFact]]:
    for row in rows:
        if len(row) == 3 and row[1].startswith("sha256="):  # RECORD itself has none
            yield _installed(row[0], site), FileFact(int(row[2] or 0), _hexadecimal(row[1].removeprefix("sha256=")))


def _installed(path: str, site: str) -> str:
    head, _, rest = path.partition("/")
    scheme, _, inner = rest.partition("/")
    if not head.endswith(".data") or scheme not in _SCHEMES:
        return f"{site}/{path}"
    if scheme in ("purelib", "platlib"):
        return f"{site}/{inner}"
    prefix = site.partition("/lib/")[0]
    return f"{prefix}/{_SCHEMES[scheme]}{inner}"


def _hexadecimal(digest: str) -> str:
    """Turn RECORD's form, base64 for URLs without padding, into that of a diff."""
    try:
        return base64.urlsafe_b64decode(digest + "=" * (-len(digest) % 4)).hex()
    except binascii.Error:
        return digest


def _member(wheel: Path, file: str, name: str) -> bytes:
    try:
        with zipfile.ZipFile(wheel) as archive:
            found = [
                item for item in archive.namelist() if item.endswith(f".dist-info/{name}") and item.count("/") == 1
            ]
            return archive.read(found[0])
    except (zipfile.BadZipFile, IndexError, KeyError, OSError) as error:
        raise _unreadable(wheel, file, error) from None


def _unreadable(path: Path, file: str, error: Exception) -> ArtifactError:
    return ArtifactError(
        f"{file} cannot be read: {error or type(error).__name__}",
        hint=f"delete {path} and fetch it again: lj-image fetch",
    )
