"""Release + lock -> Contents: without an engine, without a network, and without opening what did not change."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from lj_image.catalog.release import BaseSource, Release
from lj_image.errors import LjImageError, LockError
from lj_image.lock.lock import Artifact, Lock, LockedDistribution
from lj_image.lock.lockfile import command_for, lock_path, read_lock
from lj_image.lock.staleness import differences
from lj_image.plan import (
    CONSTRAINTS_PATH,
    ConstraintsLayer,
    FilesLayer,
    Layer,
    PipLayer,
    Plan,
    layer_digest,
    layer_size_bytes,
    plan,
    plan_digest,
    tree_files,
)
from lj_image.release.diff.contents import Contents, Distribution, FileFact, LayerFact, Listing, Part
from lj_image.release.record import Records

if TYPE_CHECKING:
    from lj_image.lock.store import ArtifactStore


def contents_of_release(release: Release, cache_dir: Path, *, revision: str | None = None) -> Contents:
    """Read a release and its lock; without a fresh one, its components alone, and it says so.

    `revision` is the one whose files the release was resolved from. Raises LockError for a damaged lock.
    """
    lock, notes = _lock_of(release)
    planned = plan(release, lock) if lock else None
    builder, more = _builder_of(planned, cache_dir) if planned else (None, ())
    at = f" at {revision}" if revision else ""
    return Contents(
        name=f"{release.image} {release.name}, variant {release.variant}{at}",
        short=f"{release.name}@{revision}" if revision else release.name,
        kind="release",
        platform=str(release.platform),
        details=ReleaseDetails(release, planned, cache_dir, keeps_templates=revision is None),
        image=release.image,
        variant=release.variant,
        components=parts_of(release),
        distributions=_distributions(planned) if planned else None,
        complete=release.base.facts.complete,
        base=release.base.name,
        layers=tuple(map(_layer, planned.layers)) if planned else None,
        measure="locked",
        builder=builder,
        architectures=release.architectures,
        fetch=None if revision else f"lj-image fetch {release.asked_as} --variant {release.variant}",
        notes=(*notes, *more),
    )


def parts_of(release: Release) -> dict[str, Part]:
    """Return the components of a release as they are installed, by id, in layer order."""
    return {
        item.id: Part(item.title, item.installed_version, item.downgrade, isinstance(item.source, BaseSource))
        for item in release.components
    }


def _lock_of(release: Release) -> tuple[Lock | None, tuple[str, ...]]:
    path = lock_path(release)
    if not release.base.facts.python:
        return None, (f"nothing is known of its base {release.base.facts.name}, so its components alone are compared",)
    if not path.exists():
        return None, (f"no lock, so its components alone are compared; run: {command_for(release)}",)
    lock = read_lock(path)
    if lock.key != release.key:
        raise LockError(f"{path.name} is the lock of {lock.key}", hint=f"run: {command_for(release)}")
    if differences(release, lock):
        return None, (f"a stale lock, so its components alone are compared; run: {command_for(release)}",)
    return lock, ()


def _builder_of(planned: Plan, cache_dir: Path) -> tuple[str | None, tuple[str, ...]]:
    """Return which builder made the image of this very plan here, as its record says."""
    try:
        record = Records(cache_dir, planned.release.image).read(planned.key)
    except LjImageError as error:
        return None, (error.message,)
    if record is None or record.built is None or record.built.plan != plan_digest(planned):
        return None, ()
    return record.built.builder, ()


def _distributions(planned: Plan) -> dict[str, Distribution]:
    """Return what the base has, and over it what is installed."""
    of_base = planned.release.base.facts.packages.items()
    found = {name: Distribution(name, version, pinned=False) for name, version in of_base}
    return found | {
        item.name: Distribution(item.name, item.version, item.component, item.artifact.sha256)
        for item in planned.installed()
    }


def _layer(layer: Layer) -> LayerFact:
    # No file of ours makes the layer of a package manager or of commands, and an empty layer does not exist.
    return LayerFact(layer_digest(layer), layer.title, layer_size_bytes(layer) or None)


@dataclass(frozen=True)
class ReleaseDetails:
    """What is read of a release only when something asks for it."""

    release: Release
    planned: Plan | None
    cache_dir: Path
    keeps_templates: bool = True
    """Whether compiled templates are worth keeping: those in a folder that is soon gone are not."""

    @cached_property
    def _store(self) -> ArtifactStore:
        from lj_image.lock.store import ArtifactStore

        return ArtifactStore(self.cache_dir)

    @cached_property
    def _locked(self) -> Mapping[str, LockedDistribution]:
        return {item.name: item for item in self.planned.installed()} if self.planned else {}

    def licences(self, names: Iterable[str]) -> Mapping[str, str]:
        """Return what the named distributions state, of those whose file is in the store, or was once."""
        items = {name: self._locked[name].artifact for name in names if name in self._locked}
        if not items:
            return {}
        from lj_image.release.diff.licences import LicenceMemory

        found = LicenceMemory(self.cache_dir).of(items.values(), self._stated_licence)
        return {name: found[item.sha256] for name, item in items.items() if item.sha256 in found}

    def _stated_licence(self, artifact: Artifact) -> str | None:
        if not self._store.has(artifact):
            return None
        from lj_image.release.diff.licences import licence_of
        from lj_image.release.diff.wheels import metadata, sdist_metadata

        read = sdist_metadata if artifact.kind == "sdist" else metadata
        return licence_of(read(self._store.path(artifact.sha256), artifact.file))

    def unlisted(self, names: Iterable[str]) -> frozenset[str]:
        """Return the distributions whose wheel is not in the store; of a source distribution nobody knows yet."""
        items = (self._locked[name] for name in names if name in self._locked)
        return frozenset(
            item.name for item in items if item.artifact.kind != "wheel" or not self._store.has(item.artifact)
        )

    def files(self, names: Iterable[str]) -> Listing:
        """Return the files of the named distributions, which `unlisted` has not, of our trees and the constraints."""
        if self.planned is None:
            return Listing({}, (f"{self.release.name}: no files without a lock",))
        found = dict(self._of_layers(self.planned))
        for name in names:
            if name in self._locked:
                found |= self._of_wheel(self._locked[name].artifact)
        return Listing(found, tuple(self._not_listed(self.planned)))

    def _of_wheel(self, artifact: Artifact) -> Mapping[str, FileFact]:
        from lj_image.release.diff.wheels import recorded_files

        site_packages = self.release.base.facts.site_packages
        return recorded_files(self._store.require(artifact), artifact.file, site_packages)

    def _of_layers(self, planned: Plan) -> Iterator[tuple[str, FileFact]]:
        for layer in planned.layers:
            match layer:
                case FilesLayer():
                    for path in tree_files(layer.source.tree):
                        place = f"{layer.source.path}/{path.relative_to(layer.source.tree).as_posix()}"
                        yield place.strip("/").replace("//", "/"), _fact(path.read_bytes())
                case ConstraintsLayer():
                    yield CONSTRAINTS_PATH.strip("/"), _fact(layer.text.encode())
                case _:
                    continue

    def _not_listed(self, planned: Plan) -> Iterator[str]:
        listed = (PipLayer, FilesLayer, ConstraintsLayer)
        if others := [layer.title for layer in planned.layers if not isinstance(layer, listed)]:
            yield f"{self.release.name}: files of {', '.join(others)} are not listed; an image has them"

    def dockerfile(self) -> str | None:
        """Return the Dockerfile that `lj-image render` prints, None without a lock."""
        if self.planned is None:
            return None
        from lj_image.dockerfile import render  # late, as the templates' engine: most comparisons render nothing
        from lj_image.templating import project_templates

        templates = project_templates(self.release.folder.parent, self.cache_dir if self.keeps_templates else None)
        return render(self.planned, templates)


def _fact(content: bytes) -> FileFact:
    return FileFact(len(content), hashlib.sha256(content).hexdigest())
