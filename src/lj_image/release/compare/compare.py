"""Two images, wherever they lie -> a Comparison; layers that both stand on are read only if the answer needs them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from lj_image.errors import ArtifactError
from lj_image.release.compare.differences import Difference, differences
from lj_image.release.compare.settings import Setting, settings
from lj_image.release.compare.tree import LayerTree, Oddity, lay, loose_ends, over


class Side(Protocol):
    """One of the two images."""

    @property
    def name(self) -> str:
        """As a person knows it."""

    @property
    def config(self) -> Mapping[str, Any]:
        """Its configuration: `os`, `architecture`, and `config` with how a container is started."""

    @property
    def diff_ids(self) -> tuple[str, ...]:
        """Of its layers, from the lowest on."""

    def layers(self, wanted: frozenset[str], unknown: frozenset[str]) -> Iterator[tuple[str, LayerTree]]:
        """Yield diff id and tree of each wanted layer, in any order; raises ArtifactError or EngineError.

        `unknown` names layers that may be asked for later: who passes them by anyway should yield them now.
        """


class Memory(Protocol):
    """The part of `TreeMemory` that is used here."""

    def knows(self, diff_id: str) -> bool: ...  # noqa: D102

    def read(self, diff_id: str) -> LayerTree | None: ...  # noqa: D102

    def write(self, diff_id: str, tree: LayerTree) -> None: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Noted:
    """An oddity, and the image that has it."""

    side: str
    oddity: Oddity


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that differs between two images."""

    before: str
    after: str
    paths: int
    """How many were compared, of both together; the root is not among them."""
    shared_layers: int
    """Of the layers that both stand on, how many were not compared: their paths are not counted."""
    differences: tuple[Difference, ...]
    settings: tuple[Setting, ...]
    noted: tuple[Noted, ...]

    def counted(self, *, strict: bool = False) -> tuple[Difference | Setting, ...]:
        """Return the differences that have no excuse; all of them if `strict`."""
        return tuple(item for item in self._every() if strict or item.excuse is None)

    def excused(self) -> tuple[Difference | Setting, ...]:
        """Return the differences that are expected."""
        return tuple(item for item in self._every() if item.excuse is not None)

    def _every(self) -> Iterator[Difference | Setting]:
        yield from self.differences
        yield from self.settings

    def differ(self, *, strict: bool = False) -> bool:
        """Say whether the two are not equal; `strict` knows no excuse, and wants no oddities either."""
        return bool(self.counted(strict=strict)) or (strict and bool(self.noted))


def compare(before: Side, after: Side, memory: Memory | None = None, *, ignore: Iterable[str] = ()) -> Comparison:
    """Compare two images, path by path and setting by setting.

    A layer that `memory` knows is not read, and neither are those at the bottom that both have where nothing above
    depends on them; without a memory every layer is. `ignore` has globs of paths whose differences are excused.
    Raises ArtifactError for a layer that is missing or another, EngineError when an engine hands none out.
    """
    shared = _shared(before.diff_ids, after.diff_ids) if memory is not None else 0
    old, new = (_laid(side, side.diff_ids[shared:], memory) for side in (before, after))
    if shared and needs_base(old, new):
        base = _laid(before, before.diff_ids[:shared], memory)
        old, new, shared = over(base, old), over(base, new), 0
    return Comparison(
        before.name,
        after.name,
        len((old.facts.keys() | new.facts.keys()) - {""}),
        shared,
        differences(old.facts, new.facts, ignore=ignore),
        settings(before.config, after.config),
        (*_noted(before, old, is_whole=not shared), *_noted(after, new, is_whole=not shared)),
    )


def needs_base(old: LayerTree, new: LayerTree) -> bool:
    """Say whether what two trees differ in depends on what lies below both of them."""
    if old.cleared != new.cleared or old.emptied != new.emptied or old.facts.keys() != new.facts.keys():
        return True
    pairs = ((fact, new.facts[path]) for path, fact in old.facts.items())
    return any(
        one.kind != other.kind or one.is_implied != other.is_implied or "hard link" in (one.kind, other.kind)
        for one, other in pairs
    )


def _shared(before: tuple[str, ...], after: tuple[str, ...]) -> int:
    """Return how many layers two images have in common, from the lowest on."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((number for number, (one, other) in pairs if one != other), min(len(before), len(after)))


def _laid(side: Side, diff_ids: tuple[str, ...], memory: Memory | None) -> LayerTree:
    """Read some of an image's layers, or remember them, and lay them over each other."""
    remembered = ((diff_id, memory.read(diff_id)) for diff_id in dict.fromkeys(diff_ids)) if memory else ()
    known = {diff_id: tree for diff_id, tree in remembered if tree is not None}
    if missing := frozenset(diff_ids) - known.keys():
        unknown = frozenset(item for item in side.diff_ids if memory is not None and not memory.knows(item))
        for diff_id, tree in side.layers(missing, unknown):
            known[diff_id] = tree
            if memory is not None:
                memory.write(diff_id, tree)
    if lost := [diff_id for diff_id in diff_ids if diff_id not in known]:
        raise ArtifactError(f"{side.name} has no layer {lost[0]}", hint="pull, build or save the image again")
    return lay(known[diff_id] for diff_id in diff_ids)


def _noted(side: Side, tree: LayerTree, *, is_whole: bool) -> Iterator[Noted]:
    """Yield the oddities of an image; what hangs in the air may stand on layers that were not read."""
    return (Noted(side.name, item) for item in (loose_ends(tree) if is_whole else tree.oddities))
