"""Contents × 2 -> Diff: pure, whatever the two were read from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal

from lj_image.catalog.changes import ChangeKind, change_of, changes
from lj_image.release.diff.contents import Contents, Distribution, FileFact, LayerFact, Measure, Part
from lj_image.release.diff.licences import same_licence


@dataclass(frozen=True, slots=True)
class ComponentChange:
    """A component that is not what it was."""

    id: str
    title: str
    kind: ChangeKind
    before: str | None
    after: str | None
    reason: str | None = None
    """For one that went down: what its release says about it, or None when it says nothing."""
    of_base: bool = False


@dataclass(frozen=True, slots=True)
class DistributionChange:
    """A distribution that is not what it was."""

    name: str
    kind: ChangeKind
    before: str | None
    after: str | None
    component: str | None
    licence_before: str | None
    licence_after: str | None

    @property
    def licence_changed(self) -> bool:
        """Say whether it has another licence now, as far as both are known."""
        before, after = self.licence_before, self.licence_after
        return before is not None and after is not None and not same_licence(before, after)


@dataclass(frozen=True, slots=True)
class Pull:
    """What a node that holds the one must pull for the other."""

    by_position_bytes: int | None
    """When every layer from the first changed one on is another: after a docker build, and in docker's own store."""
    by_content_bytes: int | None
    """When a layer is known by its content: content-addressed layers, and containerd's store."""
    total_bytes: int | None
    """For a node that holds nothing, above the base where layers stand on one."""
    measure: Measure
    unsized: int
    """Layers to pull whose size nobody knows before they are built."""
    base_changed: bool
    builder: str | None
    """The builder that the record of the newer one names."""


@dataclass(frozen=True, slots=True)
class LayersDiff:
    """Which layers of the newer one are there already."""

    before: int
    after: int
    in_place: int
    """Layers that both begin with."""
    reused: int
    """Layers with a content that the older one has, wherever it stands."""
    new: tuple[LayerFact, ...]
    gone: tuple[LayerFact, ...]
    pull: Pull

    @property
    def differ(self) -> bool:
        """Say whether anything is new, gone or elsewhere."""
        return bool(self.new or self.gone) or self.in_place < self.after


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that is not what it was."""

    path: str
    kind: Literal["added", "removed", "changed"]
    before_bytes: int | None
    after_bytes: int | None


@dataclass(frozen=True, slots=True)
class Diff:
    """Everything that two things differ in."""

    before: Contents
    after: Contents
    components: tuple[ComponentChange, ...] | None
    """None where one of the two does not say which it has."""
    distributions: tuple[DistributionChange, ...] | None
    layers: LayersDiff | None
    files: tuple[FileChange, ...] | None
    """None when not asked for, or not to be had."""
    dockerfile: tuple[str, ...] | None
    """Lines of a unified diff; None when not asked for, or not to be had."""
    notes: tuple[str, ...]
    """What could not be compared, and why."""

    @property
    def base_changed(self) -> bool:
        """Say whether two releases stand on different bases."""
        before, after = self.before.base, self.after.base
        return before is not None and after is not None and before != after

    @property
    def licences(self) -> tuple[DistributionChange, ...]:
        """The distributions that have another licence now."""
        return tuple(item for item in self.distributions or () if item.licence_changed)

    @property
    def differs(self) -> bool:
        """Say whether there is any difference, for `--exit-code`."""
        layers = self.layers is not None and self.layers.differ
        found = self.components or self.distributions or self.files or self.dockerfile
        return bool(found) or layers or self.base_changed or self.before.architectures != self.after.architectures


def diff(before: Contents, after: Contents, *, files: bool = False, dockerfile: bool = False) -> Diff:
    """Compare two contents; with `files` and `dockerfile` also what takes reading."""
    changed = _distributions(before, after)
    notes = [*_notes_of(before, after), *_unknown_licences(before, after, changed or ())]
    names = [item.name for item in changed or ()]
    found_files = _files(before, after, names, notes) if files else None
    lines = _dockerfile(before, after, notes) if dockerfile else None
    return Diff(
        before,
        after,
        _components(before, after),
        changed,
        _layers(before, after),
        found_files,
        lines,
        tuple(dict.fromkeys(notes)),
    )


def _components(before: Contents, after: Contents) -> tuple[ComponentChange, ...] | None:
    if before.components is None or after.components is None:
        return None
    old, new = before.components, after.components
    order = dict.fromkeys((*new, *old))
    found = changes(_versions(old), _versions(new), order)
    return tuple(_component(change.name, change.kind, old.get(change.name), new.get(change.name)) for change in found)


def _component(name: str, kind: ChangeKind, old: Part | None, new: Part | None) -> ComponentChange:
    either = new or old
    assert either is not None  # a change has at least one side
    reason = new.downgrade if kind == "down" and new else None
    return ComponentChange(
        name,
        either.title,
        kind,
        old.version if old else None,
        new.version if new else None,
        str(reason) if reason else None,
        either.of_base,
    )


def _versions(parts: Mapping[str, Part]) -> dict[str, str]:
    return {name: part.version for name, part in parts.items()}


def _distributions(before: Contents, after: Contents) -> tuple[DistributionChange, ...] | None:
    if before.distributions is None or after.distributions is None:
        return None
    old, new = before.distributions, after.distributions
    kinds = dict(_changed(before, after))
    licences_before = before.details.licences(name for name in kinds if name in old and name in new)
    licences_after = after.details.licences(name for name in kinds if name in new)
    return tuple(
        _distribution(name, kind, old.get(name), new.get(name), licences_before.get(name), licences_after.get(name))
        for name, kind in kinds.items()
    )


def _changed(before: Contents, after: Contents) -> Iterator[tuple[str, ChangeKind]]:
    """Yield each distribution that is not what it was, by name."""
    old, new = before.distributions or {}, after.distributions or {}
    for name in sorted({*old, *new}):
        one, other = old.get(name), new.get(name)
        if _comparable(one, after) and _comparable(other, before) and (kind := _kind(name, one, other)) is not None:
            yield name, kind


def _comparable(item: Distribution | None, opposite: Contents) -> bool:
    """Say whether the opposite's not having an item would mean anything: its base may have it, and not say so."""
    has = item is None or item.name in (opposite.distributions or {})
    return has or opposite.complete or item is None or item.pinned


def _kind(name: str, old: Distribution | None, new: Distribution | None) -> ChangeKind | None:
    change = change_of(name, old.version if old else None, new.version if new else None)
    if change is not None:
        return change.kind
    if old and new and old.artifact and new.artifact and old.artifact != new.artifact:
        return "rebuilt"
    return None


def _distribution(
    name: str,
    kind: ChangeKind,
    old: Distribution | None,
    new: Distribution | None,
    licence_before: str | None,
    licence_after: str | None,
) -> DistributionChange:
    component = next((item.component for item in (new, old) if item and item.component), None)
    return DistributionChange(
        name,
        kind,
        old.version if old else None,
        new.version if new else None,
        component,
        licence_before,
        licence_after,
    )


def _layers(before: Contents, after: Contents) -> LayersDiff | None:
    """Compare layers; a planned one and one of an image have no identity in common."""
    if before.layers is None or after.layers is None or (before.kind == "release") != (after.kind == "release"):
        return None
    old, new = before.layers, after.layers
    base_changed = before.base != after.base
    same = _same_step if after.kind == "release" else _same_content
    pairs = zip(old, new, strict=False)
    in_place = 0 if base_changed else sum(1 for _ in takewhile(lambda pair: same(*pair), pairs))
    here = {layer.identity for layer in old}
    fresh = _each_once(layer for layer in new if layer.identity not in here)
    kept = {layer.identity for layer in new}
    gone = tuple(layer for layer in old if layer.identity not in kept)
    reused = sum(layer.identity in here for layer in new)
    pull = _pull(after, new[in_place:], fresh, base_changed)
    return LayersDiff(len(old), len(new), in_place, reused, fresh, gone, pull)


def _same_content(old: LayerFact, new: LayerFact) -> bool:
    return old.identity == new.identity


def _same_step(old: LayerFact, new: LayerFact) -> bool:
    """Say whether an engine's cache takes the one for the other: a title is part of the step that makes the layer."""
    return old.identity == new.identity and old.title == new.title


def _each_once(layers: Iterable[LayerFact]) -> tuple[LayerFact, ...]:
    return tuple({layer.identity: layer for layer in layers}.values())


def _pull(after: Contents, moved: Iterable[LayerFact], fresh: Iterable[LayerFact], base_changed: bool) -> Pull:
    moved = tuple(moved)
    return Pull(
        by_position_bytes=_sum(moved),
        by_content_bytes=_sum(fresh),
        total_bytes=_sum(after.layers or ()),
        measure=after.measure,
        unsized=sum(layer.size_bytes is None for layer in moved),
        base_changed=base_changed,
        builder=after.builder,
    )


def _sum(layers: Iterable[LayerFact]) -> int | None:
    """Return the size of the layers whose size is known; None when there are layers and none is."""
    sizes = [layer.size_bytes for layer in layers]
    known = [size for size in sizes if size is not None]
    return sum(known) if known or not sizes else None


def _files(before: Contents, after: Contents, names: list[str], notes: list[str]) -> tuple[FileChange, ...] | None:
    if (before.kind == "release") != (after.kind == "release"):
        notes.append("files of a release and of an image are not compared: name the image that was built from it")
        return None
    unlisted = _unlisted(before, after, names, notes)
    listed = [name for name in names if name not in unlisted]
    old, new = before.details.files(listed), after.details.files(listed)
    notes += dict.fromkeys((*old.notes, *new.notes))
    return tuple(_file_changes(old.files, new.files))


def _unlisted(before: Contents, after: Contents, names: Iterable[str], notes: list[str]) -> frozenset[str]:
    """Return the distributions that one side cannot list: compared with nothing, the other's files would all be new."""
    names = tuple(names)
    found: frozenset[str] = frozenset()
    for side in (before, after):
        if unlisted := side.details.unlisted(names):
            way_out = f": {side.fetch}" if side.fetch else ""
            notes.append(f"{side.short}: files of {len(unlisted)} {_noun(len(unlisted))} not known here{way_out}")
            found |= unlisted
    return found


def _file_changes(old: Mapping[str, FileFact], new: Mapping[str, FileFact]) -> Iterator[FileChange]:
    for path in sorted({*old, *new}):
        one, other = old.get(path), new.get(path)
        if one is None and other is not None:
            yield FileChange(path, "added", None, other.size_bytes)
        elif other is None and one is not None:
            yield FileChange(path, "removed", one.size_bytes, None)
        elif one is not None and other is not None and one != other:
            yield FileChange(path, "changed", one.size_bytes, other.size_bytes)


def _dockerfile(before: Contents, after: Contents, notes: list[str]) -> tuple[str, ...] | None:
    old, new = before.details.dockerfile(), after.details.dockerfile()
    if old is None or new is None:
        missing = before if old is None else after
        notes.append(f"{missing.short}: no Dockerfile to compare; only a locked release has one")
        return None
    from difflib import unified_diff

    lines = unified_diff(
        old.splitlines(), new.splitlines(), f"{before.short}/Dockerfile", f"{after.short}/Dockerfile", lineterm=""
    )
    return tuple(lines)


def _notes_of(before: Contents, after: Contents) -> Iterator[str]:
    yield from (f"{side.short}: {note}" for side in (before, after) for note in side.notes)
    if before.platform != after.platform:
        yield f"the platforms differ: {before.platform} and {after.platform}"
    if before.architectures and after.architectures and before.architectures != after.architectures:
        yield (
            f"{before.short} is made for {', '.join(before.architectures)}, "
            f"{after.short} for {', '.join(after.architectures)}"
        )
    if (left := _not_compared(before, after)) > 0:
        yield f"{left} {_noun(left)} not compared: those of a base are known in part only"
    if before.layers and after.layers and (before.kind == "release") != (after.kind == "release"):
        yield "planned layers and those of an image are not compared: name the image that was built from the release"


def _not_compared(before: Contents, after: Contents) -> int:
    old, new = before.distributions, after.distributions
    if old is None or new is None:
        return 0
    unknown_after = sum(not _comparable(item, after) for item in old.values())
    return unknown_after + sum(not _comparable(item, before) for item in new.values())


def _unknown_licences(before: Contents, after: Contents, changed: Iterable[DistributionChange]) -> Iterator[str]:
    """Say how many licences are not known of what a side locks; what a base brings is nobody's to fetch."""
    changed = tuple(changed)
    old = [item.name for item in changed if item.after is not None and item.licence_before is None]
    new = [item.name for item in changed if item.licence_after is None]
    for side, names in ((before, old), (after, new)):
        found = (side.distributions or {}).get
        count = sum(item is not None and item.pinned for item in map(found, names))
        if count:
            way_out = f": {side.fetch}" if side.fetch else ""
            yield f"{side.short}: licence of {count} {_noun(count)} not known here{way_out}"


def _noun(count: int) -> str:
    return "distribution" if count == 1 else "distributions"
