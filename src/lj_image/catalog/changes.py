"""What became of each component from one set of promised versions to another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from lj_image.catalog.versions import compare, public

ChangeKind = Literal["added", "removed", "up", "down", "rebuilt"]


@dataclass(frozen=True, slots=True)
class Change:
    """One component or distribution that is not what it was."""

    name: str
    """A component's id or a distribution's name."""
    kind: ChangeKind
    """`rebuilt`: the same public version with another local part (2.3.0+5de3e14 -> 2.3.0+5de3e148)."""
    before: str | None
    after: str | None


def changes(
    before: Mapping[str, str], after: Mapping[str, str], order: Iterable[str] | None = None
) -> tuple[Change, ...]:
    """Compare name -> version mappings; in `order`, else by name. Versions that compare equal are no change.

    >>> [change.kind for change in changes({"ray": "2.44.0", "cuda": "12.8.0"}, {"ray": "2.43.0", "cuda": "12.8"})]
    ['down']
    """
    names = order if order is not None else sorted({*before, *after})
    found = (change_of(name, before.get(name), after.get(name)) for name in names)
    return tuple(change for change in found if change is not None)


def change_of(name: str, before: str | None, after: str | None) -> Change | None:
    """Return what became of one name, or None when nothing did."""
    if before == after:
        return None
    if before is None:
        return Change(name, "added", None, after)
    if after is None:
        return Change(name, "removed", before, None)
    order = compare(before, after)
    if order == 0:
        return None
    if public(before) == public(after) and "+" in before and "+" in after:
        return Change(name, "rebuilt", before, after)
    return Change(name, "up" if order < 0 else "down", before, after)
