"""Release + Lock -> Plan: which file goes into which layer, and why it stands where it stands.

A pure value, computed without network or engine; both builders consume it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from lj_image.catalog.project import Project, read_project
from lj_image.catalog.release import (
    AptSource,
    ArchiveSource,
    BaseSource,
    Component,
    FilesSource,
    PipSource,
    Release,
    RunSource,
)
from lj_image.errors import LjImageError
from lj_image.lock.lock import SHARED, Lock, LockedArchive, LockedDistribution

MIB: Final = 1024 * 1024
OWN_LAYER_BYTES: Final = 32 * MIB
"""In a common layer, a wheel this large would be pulled again whenever a small neighbour changes."""
MOST_LAYERS: Final = 100
"""Engines refuse to start more than 127 layers, and the base has some (moby's overlay2 limit)."""
CONSTRAINTS_PATH: Final = "/etc/lj-image/constraints.txt"


@dataclass(frozen=True, slots=True)
class PipLayer:
    """Distributions installed from their locked files."""

    title: str
    components: tuple[str, ...]
    distributions: tuple[LockedDistribution, ...]
    reason: str
    kind = "pip"


@dataclass(frozen=True, slots=True)
class ArchiveLayer:
    """One archive, unpacked."""

    title: str
    components: tuple[str, ...]
    archive: LockedArchive
    source: ArchiveSource
    reason: str
    kind = "archive"


@dataclass(frozen=True, slots=True)
class FilesLayer:
    """A tree of the image's folder."""

    title: str
    components: tuple[str, ...]
    source: FilesSource
    reason: str
    kind = "files"


@dataclass(frozen=True, slots=True)
class AptLayer:
    """Distribution packages."""

    title: str
    components: tuple[str, ...]
    source: AptSource
    reason: str
    kind = "apt"


@dataclass(frozen=True, slots=True)
class RunLayer:
    """Shell commands."""

    title: str
    components: tuple[str, ...]
    source: RunSource
    reason: str
    kind = "run"


@dataclass(frozen=True, slots=True)
class ConstraintsLayer:
    """The file that keeps a user's later pip from replacing protected distributions."""

    title: str
    components: tuple[str, ...]
    text: str
    reason: str
    kind = "constraints"


Layer = PipLayer | ArchiveLayer | FilesLayer | AptLayer | RunLayer | ConstraintsLayer


@dataclass(frozen=True, slots=True)
class Plan:
    """A base, layers in order, and the image's configuration."""

    release: Release
    lock: Lock
    layers: tuple[Layer, ...]
    env: tuple[tuple[str, str], ...]
    only: tuple[str, ...] = ()
    """Components of a partial image; empty for a whole one."""

    @property
    def tag(self) -> str:
        """The tag, which says of a partial or tried image that it is one."""
        return "-".join((self.release.tag, *self._marks()))

    @property
    def key(self) -> str:
        """The name of its record: that of the release, but a partial or tried image has one of its own."""
        return "-".join((self.release.key, *self._marks()))

    def _marks(self) -> tuple[str, ...]:
        return ("partial",) if self.only else ("try",) if self.release.overridden else ()

    def installed(self) -> tuple[LockedDistribution, ...]:
        """Return every distribution that this plan installs, by name."""
        found = (item for layer in self.layers if isinstance(layer, PipLayer) for item in layer.distributions)
        return tuple(sorted(found, key=lambda item: item.name))

    def locked(self) -> tuple[LockedDistribution | LockedArchive, ...]:
        """Return the locked files of this plan: of a partial image not the whole lock's."""
        archives = (layer.archive for layer in self.layers if isinstance(layer, ArchiveLayer))
        return (*self.installed(), *archives)

    def components(self) -> tuple[Component, ...]:
        """Return the components that are in the planned image."""
        wanted = set(self.only)
        return tuple(
            item
            for item in self.release.components
            if not wanted or item.id in wanted or isinstance(item.source, BaseSource)
        )

    def protected_versions(self) -> tuple[tuple[str, str], ...]:
        """Return name and version of each protected distribution that is in the image."""
        installed = {item.name: item.version for item in self.installed()}
        base = self.release.base.facts.packages
        found = ((name, installed.get(name) or base.get(name)) for name in self.release.protected)
        return tuple((name, version) for name, version in found if version)

    def size_bytes(self) -> int:
        """Return the compressed size of all locked files of this plan."""
        return sum(layer_size_bytes(layer) for layer in self.layers)


def layer_size_bytes(layer: Layer) -> int:
    """Return the size of the files that a layer is made from; 0 where only an engine can tell."""
    match layer:
        case PipLayer():
            return sum(item.artifact.size_bytes for item in layer.distributions)
        case ArchiveLayer():
            return layer.archive.artifact.size_bytes
        case FilesLayer():
            return sum(path.stat().st_size for path in tree_files(layer.source.tree))
        case ConstraintsLayer():
            return len(layer.text.encode())
        case AptLayer() | RunLayer():
            return 0


def tree_files(tree: Path) -> tuple[Path, ...]:
    """Return the regular files of a tree, in the order of their paths."""
    return tuple(sorted(path for path in tree.rglob("*") if path.is_file() and "__pycache__" not in path.parts))


def plan(release: Release, lock: Lock, *, only: Iterable[str] = ()) -> Plan:
    """Compute the plan; `only` names the components of a partial image.

    Raises LjImageError when more layers are needed than an engine can start.
    """
    wanted = tuple(only)
    components = [item for item in release.components if not wanted or item.id in wanted]
    layers = [layer for component in components for layer in _layers_of(component, lock)]
    own = _own_projects(components)
    layers += _pip_layers(SHARED, _owned(lock, SHARED, wanted, own.values()), _SHARED_REASON)
    layers += [_own_layer(component_id, project) for component_id, project in own.items()]
    draft = Plan(release, lock, tuple(layers), _environment(release, components), wanted)
    constraints = _constraints(draft)
    if len(layers) + 1 > MOST_LAYERS:
        raise LjImageError(
            f"{release.key} needs {len(layers) + 1} layers, more than {MOST_LAYERS}",
            hint="let several small components become one",
        )
    return Plan(release, lock, (*layers, constraints), draft.env, wanted)


def plan_digest(value: Plan) -> str:
    """Return `sha256:…` over everything that decides the image's content, except the base's own digest."""
    facts = [[layer.kind, layer.title, _content(layer)] for layer in value.layers]
    asked = [] if value.release.bytecode == "none" else [value.release.bytecode]  # so that digests stay as they were
    text = json.dumps([facts, asdict(value.release.config), value.env, value.tag, *asked], sort_keys=True)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def layer_digest(layer: Layer) -> str:
    """Return `sha256:…` over what decides a layer's bytes; its title and its place do not."""
    text = json.dumps([layer.kind, _content(layer)], sort_keys=True)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _own_projects(components: Iterable[Component]) -> dict[str, Project]:
    """Return the projects of ours among components, by the component's id."""
    return {
        item.id: read_project(item.source.project)
        for item in components
        if isinstance(item.source, PipSource) and item.source.project is not None
    }


def _own_layer(component_id: str, project: Project) -> PipLayer:
    from lj_image.lock.own_wheel import own_distribution  # late: most plans have no project of ours

    reason = "a project of ours; changes most often, so it stands behind what it requires"
    return PipLayer(component_id, (component_id,), (own_distribution(project, component_id),), reason)


_SHARED_REASON = "required by several components; changes with almost every release, so it stands last"


def _layers_of(component: Component, lock: Lock) -> tuple[Layer, ...]:
    title, ids, source = component.title, (component.id,), component.source
    match source:
        case BaseSource():
            return ()
        case PipSource():
            owned = [item for item in lock.distributions if item.component == component.id]
            return _pip_layers(component.id, owned, "in the order of image.yaml: what changes least often first")
        case ArchiveSource():
            archive = next(item for item in lock.archives if item.component == component.id)
            return (ArchiveLayer(title, ids, archive, source, "unpacked from the vendor's archive"),)
        case FilesSource():
            return (FilesLayer(title, ids, source, "files of ours"),)
        case AptSource():
            return (AptLayer(title, ids, source, "packages of the distribution"),)
        case RunSource():
            return (RunLayer(title, ids, source, "commands; only an engine can run them"),)


def _pip_layers(owner: str, owned: Iterable[LockedDistribution], reason: str) -> tuple[PipLayer, ...]:
    """Give each large wheel a layer of its own; the rest of the component shares one."""
    ordered = sorted(owned, key=lambda item: item.name)
    large = [item for item in ordered if item.artifact.size_bytes >= OWN_LAYER_BYTES]
    small = tuple(item for item in ordered if item.artifact.size_bytes < OWN_LAYER_BYTES)
    own = [
        PipLayer(f"{owner}: {item.name}", (owner,), (item,), "32 MiB or more: pulled again only when it changes")
        for item in large
    ]
    return (*own, PipLayer(owner, (owner,), small, reason)) if small else tuple(own)


def _owned(lock: Lock, owner: str, only: tuple[str, ...], own: Iterable[Project]) -> list[LockedDistribution]:
    """Return what `owner` brings; of the shared ones, in a partial image, those that its components reach."""
    owned = [item for item in lock.distributions if item.component == owner]
    if not only:
        return owned
    reached = _reached(lock, only, own)
    return [item for item in owned if item.name in reached]


def _reached(lock: Lock, only: tuple[str, ...], own: Iterable[Project]) -> frozenset[str]:
    reached = {item.name for item in lock.distributions if item.component in only}
    reached |= {name for project in own for name in project.required_names()}
    while True:
        more = {item.name for item in lock.distributions if not reached.isdisjoint(item.required_by)} - reached
        if not more:
            return frozenset(reached)
        reached |= more


def _environment(release: Release, components: Iterable[Component]) -> tuple[tuple[str, str], ...]:
    env = dict(release.config.env)
    paths = [
        f"{item.source.path.rstrip('/')}/{item.source.library_path}"
        for item in components
        if isinstance(item.source, ArchiveSource) and item.source.library_path
    ]
    if paths:
        # An empty entry would mean the current folder, so the colon comes only with a value of the base's.
        env["LD_LIBRARY_PATH"] = ":".join(paths) + "${LD_LIBRARY_PATH:+:${LD_LIBRARY_PATH}}"
    env["PIP_CONSTRAINT"] = CONSTRAINTS_PATH
    return tuple(sorted(env.items()))


def _constraints(draft: Plan) -> ConstraintsLayer:
    lines = [f"{name}=={version}" for name, version in draft.protected_versions()]
    text = "\n".join(("# Protected by the release: pip must not replace these.", *lines, ""))
    return ConstraintsLayer(
        "protected packages", (), text, "keeps a later pip install from replacing them; smallest, so last"
    )


def _content(layer: Layer) -> object:
    """Return what decides a layer's bytes, and nothing of this machine."""
    match layer:
        case PipLayer():
            return [[item.name, item.version, item.artifact.sha256] for item in layer.distributions]
        case ArchiveLayer():
            return [layer.archive.artifact.sha256, asdict(layer.source)]
        case FilesLayer():
            return [layer.source.path, _tree_digest(layer.source)]
        case AptLayer() | RunLayer():
            return asdict(layer.source)
        case ConstraintsLayer():
            return layer.text


def _tree_digest(source: FilesSource) -> list[tuple[str, str, int]]:
    return [
        (
            str(path.relative_to(source.tree)),
            hashlib.sha256(path.read_bytes()).hexdigest(),
            path.stat().st_mode & 0o777,
        )
        for path in tree_files(source.tree)
    ]


@dataclass(frozen=True, slots=True)
class LayerRow:
    """A layer told to people and machines."""

    number: int
    title: str
    size_bytes: int
    files: int
    contents: str
    reason: str

    @property
    def mib(self) -> str:
        """Its size, for people."""
        return f"{self.size_bytes / MIB:,.1f}"

    def to_json(self) -> dict[str, object]:
        """Return the row for machines."""
        return asdict(self)


def describe(value: Plan) -> tuple[LayerRow, ...]:
    """Return a row for each layer, in order."""
    return tuple(
        LayerRow(number, layer.title, layer_size_bytes(layer), *_contents(layer), layer.reason)
        for number, layer in enumerate(value.layers, start=1)
    )


def total_line(value: Plan) -> str:
    """Return the last line of a plan: how many layers, files and bytes."""
    rows = describe(value)
    size_mib = sum(row.size_bytes for row in rows) / MIB
    return f"{len(rows)} layers, {sum(row.files for row in rows)} files, {size_mib:,.1f} MiB compressed, above the base"


def _contents(layer: Layer) -> tuple[int, str]:
    match layer:
        case PipLayer():
            names = [f"{item.name} {item.version}" for item in layer.distributions]
            return len(names), ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        case ArchiveLayer():
            return 1, layer.archive.artifact.file
        case FilesLayer():
            return len(tree_files(layer.source.tree)), f"to {layer.source.path}"
        case AptLayer():
            return len(layer.source.packages), ", ".join(f"{name}={version}" for name, version in layer.source.packages)
        case RunLayer():
            return 0, layer.source.commands[0]
        case ConstraintsLayer():
            return 1, CONSTRAINTS_PATH
