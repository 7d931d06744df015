"""What is at each path, and how layers lie over each other; pure.

Laying is associative: `over(a, over(b, c))` is `over(over(a, b), c)`. So the layers above a base that two images share
can be compared by themselves, and the base has to be known only where they differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Final, Literal

Kind = Literal["file", "folder", "symlink", "hard link", "character device", "block device", "fifo", "unknown"]

IMPLIED_MODE: Final = 0o755
"""Of a folder that holds something but that no layer states; not every engine gives it the same."""


@dataclass(frozen=True, slots=True)
class Fact:
    """What is at a path."""

    kind: Kind
    """A hard link is one only until the file is found that it names."""
    mode: int = 0o777
    """The lowest twelve bits; 0o777 of every symbolic link, whose mode no one asks."""
    uid: int = 0
    gid: int = 0
    size_bytes: int = 0
    content: str = ""
    """A file's sha256 in hexadecimal, a link's target, a device's `major:minor`."""
    xattrs: tuple[tuple[str, str], ...] = ()
    """Names and values, which are hexadecimal; sorted."""
    is_implied: bool = False
    """Whether a folder is there only since something is in it."""
    text: bytes | None = field(default=None, compare=False, repr=False)
    """A RECORD's bytes, compressed by zlib, since its rows are compared."""


IMPLIED: Final = Fact("folder", IMPLIED_MODE, is_implied=True)


@dataclass(frozen=True, slots=True)
class Oddity:
    """Something in a layer that engines do not agree on."""

    path: str
    what: str


@dataclass(frozen=True, slots=True)
class LayerTree:
    """What one layer, or several that lie over each other, do to those below."""

    facts: Mapping[str, Fact]
    """By path, without a leading slash; every folder above a path is among them, stated or implied. The root is the
    empty path, and always there."""
    cleared: frozenset[str] = frozenset()
    """Paths that are taken away, with all below them, before the facts are laid."""
    emptied: frozenset[str] = frozenset()
    """Folders of which all that lower layers have is taken away, and which stay themselves."""
    oddities: tuple[Oddity, ...] = ()


EMPTY: Final = LayerTree({"": IMPLIED})


def lay(layers: Iterable[LayerTree]) -> LayerTree:
    """Lay layers over each other, from the lowest on."""
    return reduce(over, layers, EMPTY)


def over(lower: LayerTree, upper: LayerTree) -> LayerTree:
    """Lay one layer over another."""
    hidden = frozenset(_hidden(lower, upper))
    facts = {path: fact for path, fact in lower.facts.items() if path not in hidden} if hidden else dict(lower.facts)
    for path, fact in upper.facts.items():
        if not (fact.is_implied and _is_folder(facts.get(path))):
            facts[path] = _resolved(fact, lower)
    turned = (path for path, fact in upper.facts.items() if _is_folder(fact) and _hides(lower.facts.get(path)))
    return LayerTree(
        facts,
        lower.cleared | upper.cleared | frozenset(turned),
        lower.emptied | upper.emptied,
        (*lower.oddities, *upper.oddities),
    )


def loose_ends(tree: LayerTree) -> Iterator[Oddity]:
    """Yield what a whole tree leaves open: folders that no layer states, links to no file, and oddities of layers."""
    yield from tree.oddities
    for path, fact in sorted(tree.facts.items()):
        if fact.is_implied and path:
            yield Oddity(path, "a folder that no layer states; each engine gives it a mode of its own")
        if fact.kind == "hard link":
            yield Oddity(path, f"a hard link to {fact.content}, which is no file")


def above(path: str) -> Iterator[str]:
    """Yield the folders that a path lies in, the root last.

    >>> list(above("usr/lib/x"))
    ['usr/lib', 'usr', '']
    """
    while path:
        path = path.rpartition("/")[0]
        yield path


def _is_folder(fact: Fact | None) -> bool:
    return fact is not None and fact.kind == "folder"


def _hides(fact: Fact | None) -> bool:
    """Say whether a fact hides what lower layers have below its path."""
    return fact is not None and fact.kind != "folder"


def _resolved(fact: Fact, lower: LayerTree) -> Fact:
    """Return a hard link as the file that it names, where that is in a lower layer."""
    found = lower.facts.get(fact.content) if fact.kind == "hard link" else None
    return found if found is not None and found.kind != "folder" else fact


def _hidden(lower: LayerTree, upper: LayerTree) -> Iterator[str]:
    """Yield the paths of the lower one that the upper one takes away, or has something else in the place of."""
    replaced = {path for path, fact in upper.facts.items() if _hides(fact) and _is_folder(lower.facts.get(path))}
    gone = upper.cleared | replaced
    for path in lower.facts if gone or upper.emptied else ():
        folders = frozenset(above(path))
        if path in upper.cleared or gone & folders or upper.emptied & folders:
            yield path
