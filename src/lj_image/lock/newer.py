"""Which version of a distribution is the newest that a base can install: a pure choice among the files of an index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.tags import Tag
from packaging.version import Version

from lj_image.catalog.release import Release
from lj_image.lock.tags import best_file, tag_ranks, version_of
from lj_image.lock.uvtool import OfferedFile


@dataclass(frozen=True, slots=True)
class Hold:
    """One thing that keeps a distribution at its version."""

    kind: Literal["release", "override", "requirement", "python", "platform", "unknown"]
    text: str


@dataclass(frozen=True, slots=True)
class Newer:
    """What an index has that is newer than one version."""

    fitting: str | None
    elsewhere: str | None
    reason: Hold | None
    """Why the base cannot install `elsewhere`."""
    file: OfferedFile | None = None
    """The file of `fitting` that the base would install."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What a file must fit to be installed."""

    python: str
    place: str
    """Such as `linux/amd64 with glibc 2.36`, for messages."""
    ranks: Mapping[Tag, int]

    @classmethod
    def of(cls, release: Release) -> Ground:
        """Return the ground that a release's base is."""
        facts = release.base.facts
        ranks = tag_ranks(facts.python, facts.glibc, release.platform.architecture)
        return cls(facts.python, f"{release.platform} with glibc {facts.glibc}", ranks)


def newer_than(locked: str, files: Iterable[OfferedFile], ground: Ground, *, pre: bool = False) -> Newer:
    """Choose the newest final version that a base can install, and what is newer still but cannot be."""
    by_version: dict[Version, list[OfferedFile]] = {}
    for file in files:
        if not file.yanked and (text := version_of(file.file)) is not None:
            by_version.setdefault(Version(text), []).append(file)
    above = sorted(version for version in by_version if version > Version(locked))
    wanted = [version for version in reversed(above) if pre or not version.is_prerelease]
    fitting = next((version for version in wanted if _obstacle(by_version[version], ground) is None), None)
    beyond = wanted[0] if wanted and wanted[0] != fitting else None
    reason = _obstacle(by_version[beyond], ground) if beyond else None
    return Newer(
        str(fitting) if fitting else None,
        str(beyond) if beyond else None,
        Hold(reason.kind, f"{beyond} {reason.text}") if reason else None,
        _chosen(by_version[fitting], ground) if fitting else None,
    )


def _chosen(files: Iterable[OfferedFile], ground: Ground) -> OfferedFile | None:
    by_name = {file.file: file for file in files if _runs(file.requires_python, ground.python)}
    best = best_file(by_name, ground.ranks)
    return by_name[best] if best else None


def _obstacle(files: Iterable[OfferedFile], ground: Ground) -> Hold | None:
    """Return why a base can install none of a version's files; None when it can."""
    files = tuple(files)
    if not any(_runs(file.requires_python, ground.python) for file in files):
        asked = " or ".join(sorted({file.requires_python for file in files if file.requires_python}))
        return Hold("python", f"needs Python {asked}; the base has {ground.python}")
    if _chosen(files, ground) is None:
        return Hold("platform", f"has no file for Python {ground.python} on {ground.place}")
    return None


def _runs(requires_python: str | None, python: str) -> bool:
    try:
        return requires_python is None or SpecifierSet(requires_python).contains(python, prereleases=True)
    except InvalidSpecifier:  # old files have some; pip passes over them too
        return True
