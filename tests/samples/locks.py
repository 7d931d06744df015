"""Locks made up for tests: one file for each distribution that a release names, with a size of one's choice."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from lj_image.catalog.release import ArchiveSource, PipSource, Release
from lj_image.lock.lock import Artifact, Lock, LockedArchive, LockedDistribution

KIB = 1024


def made_up_lock(
    release: Release, sizes: Mapping[str, int] | None = None, more: Iterable[LockedDistribution] = ()
) -> Lock:
    """Lock each named distribution; `sizes` gives bytes by name, else 10 KiB."""
    sizes = sizes or {}
    distributions = [
        distribution(name, version, component.id, size_bytes=sizes.get(name, 10 * KIB))
        for component in release.components
        if isinstance(component.source, PipSource) and component.source.project is None
        for name, version in component.source.distributions
    ]
    archives = tuple(
        LockedArchive(component.id, component.version, artifact(component.source.file, "archive"), "library")
        for component in release.components
        if isinstance(component.source, ArchiveSource)
    )
    everything = tuple(sorted((*distributions, *more), key=lambda item: item.name))
    return Lock(release.key, (), everything, archives, "sha256:" + "0" * 64)


def distribution(
    name: str, version: str, component: str, *, size_bytes: int = 10 * KIB, required_by: tuple[str, ...] = ()
) -> LockedDistribution:
    """Lock one distribution as a wheel."""
    file = artifact(f"{name.replace('-', '_')}-{version}-py3-none-any.whl", "wheel", size_bytes)
    return LockedDistribution(name, version, file, "pypi", component, required_by)


def artifact(file: str, kind: str, size_bytes: int = 10 * KIB) -> Artifact:
    """Return a file whose digest follows from its name."""
    return Artifact(file, size_bytes, hashlib.sha256(file.encode()).hexdigest(), kind)  # type: ignore[arg-type]
