"""Which of a version's files fits the base: wheel tags of a Python and a C library that need not be here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # late: reading a lock needs no tags
    from packaging.tags import Tag

MACHINES: Final = {"amd64": "x86_64", "arm64": "aarch64"}
"""Architectures as image indexes write them -> as wheels do."""
_LEGACY: Final = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
"""PEP 600: the older names are aliases of these versions of glibc 2."""
_OLDEST_GLIBC_MINOR: Final = {"x86_64": 5, "aarch64": 17}
SDIST_SUFFIXES: Final = (".tar.gz", ".zip", ".tar.bz2", ".tgz")


def tag_ranks(python: str, glibc: str, architecture: str) -> dict[Tag, int]:
    """Return every wheel tag that the base can install, the best with rank 0."""
    from packaging.tags import compatible_tags, cpython_tags

    major, minor = (int(part) for part in python.split(".")[:2])
    platforms = list(_platforms(int(glibc.split(".")[1]), MACHINES[architecture]))
    tags = (
        *cpython_tags((major, minor), platforms=platforms),
        *compatible_tags((major, minor), f"cp{major}{minor}", platforms),
    )
    return {tag: rank for rank, tag in reversed(list(enumerate(tags)))}


def _platforms(glibc_minor: int, machine: str) -> Iterator[str]:
    oldest = _OLDEST_GLIBC_MINOR[machine]
    for minor in range(glibc_minor, oldest - 1, -1):
        yield f"manylinux_2_{minor}_{machine}"
        if minor in _LEGACY:
            yield f"{_LEGACY[minor]}_{machine}"
    yield f"linux_{machine}"


def best_file(files: Iterable[str], ranks: Mapping[Tag, int]) -> str | None:
    """Return the best fitting wheel, else the source distribution, else None.

    Of two wheels with equal tags the higher build number wins (PEP 427), then the name, so that the choice
    depends on the files alone.
    """
    names = sorted(files)
    wheels = [(key, name) for name in names if (key := _wheel_key(name, ranks)) is not None]
    if wheels:
        return min(wheels)[1]
    return next((name for name in names if is_sdist(name)), None)


def is_sdist(file: str) -> bool:
    """Say whether a file's name is that of a source distribution."""
    return file.endswith(SDIST_SUFFIXES)


def version_of(file: str) -> str | None:
    """Return the version in the name of a wheel or source distribution; None for any other name."""
    from packaging.utils import (
        InvalidSdistFilename,
        InvalidWheelFilename,
        parse_sdist_filename,
        parse_wheel_filename,
    )

    try:
        return str((parse_wheel_filename(file) if file.endswith(".whl") else parse_sdist_filename(file))[1])
    except (InvalidWheelFilename, InvalidSdistFilename):
        return None


def _wheel_key(file: str, ranks: Mapping[Tag, int]) -> tuple[int, int, str] | None:
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    if not file.endswith(".whl"):
        return None
    try:
        _, _, build, tags = parse_wheel_filename(file)
    except InvalidWheelFilename:
        return None
    fitting = [ranks[tag] for tag in tags if tag in ranks]
    return (min(fitting), -(build[0] if build else 0), file) if fitting else None
