"""Release -> Lock: uv finds the versions, we choose the one file of each for the platform and its owner."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.tags import Tag
from packaging.utils import canonicalize_name
from packaging.version import Version

from lj_image.catalog.release import ArchiveSource, Component, Release
from lj_image.config import Config
from lj_image.errors import LjImageError, ResolutionError, UsageError
from lj_image.lock.explain import explain
from lj_image.lock.fetch import archive_url, fetch_unknown
from lj_image.lock.http import Address, Client
from lj_image.lock.index import SimpleIndexes, archive_address, index_addresses
from lj_image.lock.inputs import inputs_of
from lj_image.lock.lock import Artifact, Lock, LockedArchive, LockedDistribution
from lj_image.lock.lockfile import with_digest
from lj_image.lock.ownership import owners
from lj_image.lock.progress import Progress, Silent
from lj_image.lock.project import DEFAULT_INDEX, Demand, Pin, demand_of, write_project
from lj_image.lock.store import ArtifactStore
from lj_image.lock.tags import best_file, is_sdist, tag_ranks, version_of
from lj_image.lock.uvtool import (
    OfferedFile,
    Resolved,
    Target,
    UvFailed,
    compile_files,
    compile_versions,
    uv_environment,
)
from lj_image.suggest import did_you_mean


def resolve(
    release: Release,
    config: Config,
    *,
    previous: Lock | None = None,
    upgrade: Sequence[str] = (),
    progress: Progress | None = None,
) -> Lock:
    """Return the lock of a release.

    Versions and files of the `previous` lock are kept where they still fit, except those named in `upgrade`.
    Raises ResolutionError when nothing satisfies the release, LockError for an index or a location that the config
    does not know, and ArtifactError when a file cannot be looked at.
    """
    progress = progress or Silent()
    _check_upgrades(upgrade, release, previous)
    upgraded = frozenset(canonicalize_name(name) for name in upgrade)
    kept = {item.name: item for item in previous.distributions if item.name not in upgraded} if previous else {}
    demand = demand_of(release)
    archives = _archives(release, config, previous, upgraded, progress)
    progress.start(0, f"resolving {release.key}")
    try:
        versions, files = _ask_uv(release, config, demand, kept, upgraded) if demand.pins else ((), {})
    finally:
        progress.done()
    choice = _Choice(release, config, demand, kept, progress)
    named = {pin.name: pin.component for pin in demand.pins}
    names = {item.name for item in versions}
    parents = {item.name: tuple(name for name in item.required_by if name in names) for item in versions}
    owner = owners(named, parents)
    distributions = tuple(
        LockedDistribution(
            item.name,
            item.version,
            choice.artifact(item, files.get(item.name, ())),
            choice.index_of(item.name),
            owner[item.name],
            parents[item.name],
        )
        for item in versions
    )
    lock = Lock(release.key, inputs_of(release), distributions, archives, "", release.image_in_commands)
    return with_digest(lock)


def _check_upgrades(upgrade: Sequence[str], release: Release, previous: Lock | None) -> None:
    """Refuse a name that nothing is locked under: it would silently upgrade nothing."""
    if previous is None:
        return
    known = {*(item.name for item in previous.distributions), *(component.id for component in release.components)}
    for name in upgrade:
        if canonicalize_name(name) not in known:
            raise UsageError(f"nothing is locked as {name!r}", hint=did_you_mean(name, known, noun="names"))


def _ask_uv(
    release: Release,
    config: Config,
    demand: Demand,
    kept: Mapping[str, LockedDistribution],
    upgraded: Iterable[str],
) -> tuple[tuple[Resolved, ...], dict[str, tuple[OfferedFile, ...]]]:
    facts = release.base.facts
    target = Target.of(facts.python, facts.glibc, release.platform.architecture)
    addresses = _named_addresses(demand, config)
    credentials = {name: (item.username, item.password or "") for name, item in addresses.items() if item.username}
    env = uv_environment(os.environ, credentials)
    if DEFAULT_INDEX in addresses:  # the config's word is the last one
        for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL"):
            env.pop(name, None)
    keep = [f"{item.name}=={item.version}" for item in kept.values()]
    with tempfile.TemporaryDirectory(prefix="lj-image-lock-") as made:
        folder = Path(made)
        winning = [pin for pin in demand.pins if pin.overrides]
        overrides = [_override(pin, release, config) for pin in winning]
        given = {pin.name: pin.version for pin in winning if pin.index != DEFAULT_INDEX}
        write_project(folder, demand, facts.python, {name: item.url for name, item in addresses.items()}, overrides)
        try:
            extras = {pin.name: pin.extras for pin in demand.pins if pin.extras}
            versions = compile_versions(folder, target, env, keep, upgraded, given, extras)
            return versions, compile_files(folder, target, env, versions)
        except UvFailed as failure:
            raise explain(failure.words, demand, facts, lambda pin: _versions_offered(pin, config)) from None


def _named_addresses(demand: Demand, config: Config) -> dict[str, Address]:
    """Return the addresses that uv must be told; the default index only when the config has its own."""
    names = dict.fromkeys(pin.index for pin in demand.pins if pin.index != DEFAULT_INDEX)
    if DEFAULT_INDEX in config.values.indexes:
        names[DEFAULT_INDEX] = None
    return {name: index_addresses(name, config)[0] for name in names}


def _override(pin: Pin, release: Release, config: Config) -> str:
    """Return a requirement that wins over all others.

    uv looks for overrides on the default index only, so one from another index is given by its file's address.
    """
    if pin.index == DEFAULT_INDEX:
        return pin.requirement
    address = index_addresses(pin.index, config)[0]
    with Client() as client:
        offered = SimpleIndexes(config, client).files(pin.name, pin.index, address)
    urls = {file.file: file.url for file in offered if version_of(file.file) == str(Version(pin.version))}
    best = best_file(urls, _ranks(release))
    if best is None:
        raise ResolutionError(
            f"component {pin.component}: the index {pin.index!r} has no {pin.requirement} that fits the base",
            hint="offered: " + (", ".join(file.file for file in offered) or "nothing"),
        )
    return f"{pin.name_with_extras} @ {urls[best]}"


def _ranks(release: Release) -> dict[Tag, int]:
    facts = release.base.facts
    return tag_ranks(facts.python, facts.glibc, release.platform.architecture)


def _versions_offered(pin: Pin, config: Config) -> tuple[str, ...]:
    """Return what the index of a pin offers under its name, for a hint; nothing when it cannot be asked."""
    found: list[str] = []
    try:
        with Client() as client:
            indexes = SimpleIndexes(config, client)
            for address in index_addresses(pin.index, config):
                files = indexes.files(pin.name, pin.index, address)
                found += [version for item in files if (version := version_of(item.file))]
    except LjImageError:
        return ()
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Choice:
    """Chooses the file of each distribution."""

    release: Release
    config: Config
    demand: Demand
    kept: Mapping[str, LockedDistribution]
    progress: Progress

    def index_of(self, name: str) -> str:
        """Return the name of the index that a distribution comes from."""
        pin = self.demand.pin(name)
        return pin.index if pin is not None else DEFAULT_INDEX

    def artifact(self, item: Resolved, offered: tuple[OfferedFile, ...]) -> Artifact:
        """Return the file to lock: the one locked before while it is still offered, else the best."""
        before = self.kept.get(item.name)
        if before is not None and before.version == item.version and before.index == self.index_of(item.name):
            digests = {file.sha256 for file in offered}
            if before.artifact.sha256 in digests:
                return before.artifact
        return self._learned(item, self._best(item, offered))

    def _best(self, item: Resolved, offered: tuple[OfferedFile, ...]) -> OfferedFile:
        facts = self.release.base.facts
        name = best_file((file.file for file in offered), _ranks(self.release))
        for file in offered:
            if file.file == name:
                return file
        raise ResolutionError(
            f"{item.name} {item.version} has no file for Python {facts.python} on {self.release.platform} "
            f"with glibc {facts.glibc}",
            hint="offered: " + (", ".join(file.file for file in offered) or "nothing"),
        )

    def _learned(self, item: Resolved, file: OfferedFile) -> Artifact:
        """Return the file's facts; those that its index does not state are learned from the file."""
        artifact = Artifact(file.file, file.size_bytes or 0, file.sha256 or "", "wheel")
        artifact = replace(artifact, kind="sdist") if is_sdist(file.file) else artifact
        if file.sha256 is not None and file.size_bytes is not None:
            return artifact
        address = index_addresses(self.index_of(item.name), self.config)[-1]
        if file.sha256 is not None:
            with Client() as client:
                if (size := client.size_of(file.url, address)) is not None:
                    return replace(artifact, size_bytes=size)
        store = ArtifactStore(self.config.cache_dir)
        learned = fetch_unknown(file.url, address, store, artifact, self.progress)
        if file.sha256 not in (None, learned.sha256):
            raise ResolutionError(f"{file.file} has other bytes than its index states")
        return learned


def _archives(
    release: Release, config: Config, previous: Lock | None, upgraded: Iterable[str], progress: Progress
) -> tuple[LockedArchive, ...]:
    known = {item.component: item for item in previous.archives} if previous else {}
    return tuple(
        _archive(
            component, component.source, config, None if component.id in upgraded else known.get(component.id), progress
        )
        for component in sorted(release.components, key=lambda component: component.id)
        if isinstance(component.source, ArchiveSource)
    )


def _archive(
    component: Component, source: ArchiveSource, config: Config, known: LockedArchive | None, progress: Progress
) -> LockedArchive:
    """Return what was locked before; else load the archive, whose digest is what it has today."""
    same = known is not None and (known.version, known.artifact.file) == (component.version, source.file)
    if known is not None and same and known.location == source.location:
        return known
    address = archive_address(source.location, config)
    draft = Artifact(source.file, 0, "", "archive")
    url = archive_url(address, source.file)
    artifact = fetch_unknown(url, address, ArtifactStore(config.cache_dir), draft, progress)
    return LockedArchive(component.id, component.version, artifact, source.location)
