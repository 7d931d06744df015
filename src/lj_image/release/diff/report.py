"""Diff -> the tables that people read; a terminal and a pull request differ only in how they draw them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

from lj_image.plan import MIB
from lj_image.release.diff.compare import ComponentChange, Diff, DistributionChange, FileChange, LayersDiff
from lj_image.release.diff.contents import Contents, Measure

NO_REASON: Final = "no reason given"
NONE_STATED: Final = "none stated"
DOWN: Final = "DOWN"
"""How a version that went down is told: nobody should read past it."""
_MEASURES: Final[dict[Measure, str]] = {
    "locked": "sizes are those of the locked files, which are compressed",
    "compressed": "sizes are those of the compressed layers",
    "unpacked": "sizes are those of unpacked layers; a registry sends less",
}


@dataclass(frozen=True, slots=True)
class Table:
    """One list of differences."""

    title: str
    """Such as `3 components`."""
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    long: bool = False
    """Whether a reader would rather unfold it."""
    left_out: int = 0
    """Rows beyond those that are shown."""


def heading(diff: Diff) -> str:
    """Return what is compared, in one line."""
    one, other = diff.before, diff.after
    platforms = " and ".join(dict.fromkeys((one.platform, other.platform)))
    if one.kind == other.kind == "release" and (one.image, one.variant) == (other.image, other.variant):
        return f"{one.image} {one.short} → {other.short}, variant {one.variant}, {platforms}"
    return f"{one.name} → {other.name}, {platforms}"


def tables(diff: Diff, *, most_files: int | None = None) -> tuple[Table, ...]:
    """Return the tables that have rows, in the order of what matters most."""
    found = (
        _components(diff),
        _down(diff),
        _licences(diff),
        _distributions(diff),
        *(_layers(diff, diff.layers) if diff.layers and diff.layers.differ else ()),
        _files(diff, most_files),
    )
    return tuple(table for table in found if table is not None and table.rows)


def base_line(diff: Diff) -> str | None:
    """Return what became of the base, None where neither tells it."""
    before, after = diff.before.base, diff.after.base
    if before is None or after is None:
        return None
    return f"base: {before} → {after}" if before != after else f"base: {after}, the same"


def to_json(diff: Diff) -> dict[str, Any]:
    """Return everything for machines; nothing is cut."""
    return {
        "before": _side(diff.before),
        "after": _side(diff.after),
        "differs": diff.differs,
        "base_changed": diff.base_changed,
        "components": _plain(diff.components),
        "distributions": _plain(diff.distributions),
        "licences": [item.name for item in diff.licences],
        "layers": asdict(diff.layers) if diff.layers else None,
        "files": _plain(diff.files),
        "dockerfile": "\n".join(diff.dockerfile) if diff.dockerfile is not None else None,
        "notes": list(diff.notes),
    }


def size(size_bytes: int | None) -> str:
    """Return a size for people; `?` where nobody knows it."""
    if size_bytes is None:
        return "?"
    return f"{size_bytes / MIB:,.1f} MiB" if size_bytes >= MIB else f"{size_bytes / 1024:,.1f} KiB"


def _side(contents: Contents) -> dict[str, object]:
    return {
        "name": contents.name,
        "kind": contents.kind,
        "platform": contents.platform,
        "base": contents.base,
        "architectures": list(contents.architectures),
    }


def _plain(items: Iterable[Any] | None) -> list[dict[str, Any]] | None:
    return None if items is None else [asdict(item) for item in items]


def counted(kinds: Iterable[str]) -> str:
    """Return `2 up, 1 DOWN`, most frequent first."""
    return ", ".join(f"{count} {_word(kind)}" for kind, count in Counter(kinds).most_common())


def _word(kind: str) -> str:
    return DOWN if kind == "down" else kind


def plural(count: int, noun: str) -> str:
    """Return `1 file`, `2 files`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _columns(diff: Diff) -> tuple[str, str]:
    before, after = diff.before.short, diff.after.short
    return (before, after) if before != after else (f"{before} before", f"{after} after")


def _components(diff: Diff) -> Table | None:
    if diff.components is None:
        return None
    rows = tuple(_component_row(item) for item in diff.components)
    kinds = counted(item.kind for item in diff.components)
    return Table(f"{plural(len(rows), 'component')}: {kinds}", ("COMPONENT", *_columns(diff), "CHANGE", "WHY"), rows)


def _component_row(item: ComponentChange) -> tuple[str, ...]:
    why = (item.reason or NO_REASON) if item.kind == "down" else "with the base" if item.of_base else ""
    return item.title, item.before or "", item.after or "", _word(item.kind), why


def _distributions(diff: Diff) -> Table | None:
    if diff.distributions is None:
        return None
    rows = tuple(_distribution_row(item) for item in diff.distributions)
    kinds = counted(item.kind for item in diff.distributions)
    header = ("DISTRIBUTION", *_columns(diff), "CHANGE", "COMPONENT", "LICENCE")
    return Table(f"{plural(len(rows), 'distribution')}: {kinds}", header, rows, long=True)


def _distribution_row(item: DistributionChange) -> tuple[str, ...]:
    licence = item.licence_after if item.after is not None else None
    return (
        item.name,
        item.before or "",
        item.after or "",
        _word(item.kind),
        item.component or "",
        "" if licence is None else licence or NONE_STATED,
    )


def _down(diff: Diff) -> Table:
    """Return the distributions that went down, which nobody should have to look for in the long list."""
    found = [item for item in diff.distributions or () if item.kind == "down"]
    reasons = {item.id: item.reason for item in diff.components or () if item.kind == "down"}
    rows = tuple(
        (item.name, item.before or "", item.after or "", DOWN, reasons.get(item.component or "") or NO_REASON)
        for item in found
    )
    return Table(
        f"{plural(len(rows), 'distribution')} {DOWN}", ("DISTRIBUTION", *_columns(diff), "CHANGE", "WHY"), rows
    )


def _licences(diff: Diff) -> Table:
    rows = tuple(
        (item.name, item.licence_before or NONE_STATED, item.licence_after or NONE_STATED) for item in diff.licences
    )
    return Table(f"{plural(len(rows), 'licence')} changed", ("LICENCE OF", *_columns(diff)), rows)


def _layers(diff: Diff, layers: LayersDiff) -> Iterator[Table]:
    header = (f"TO PULL FOR {diff.after.short}, HOLDING {diff.before.short}", "SIZE", "LAYERS")
    yield Table(layers_title(layers), header, tuple(_pull_rows(diff, layers)))
    rows = tuple(
        (layer.title, size(layer.size_bytes), layer.identity.removeprefix("sha256:")[:12]) for layer in layers.new
    )
    yield Table(f"{plural(len(rows), 'new layer')}", ("NEW LAYER", "SIZE", "CONTENT"), rows, long=True)


def layers_title(layers: LayersDiff) -> str:
    """Return how many layers there are, stay in place and are new."""
    return (
        f"{plural(layers.after, 'layer')}: the first {layers.in_place} stay in place, {layers.reused} have a content "
        f"that is there already, {len(layers.new)} new"
    )


def _pull_rows(diff: Diff, layers: LayersDiff) -> Iterator[tuple[str, ...]]:
    pull, moved = layers.pull, layers.after - layers.in_place
    if diff.after.kind == "release":
        built = f"; the record says: {pull.builder}" if pull.builder else ""
        first = f"must pull, as docker builds (all from the first changed layer on{built})"
        second = "content-addressed layers (only the changed ones)"
        third = "for a node that holds the base alone"
    else:
        first = "must pull, into docker's own store (all from the first changed layer on)"
        second = "into containerd's store (only the changed ones)"
        third = "for a node that holds nothing"
    yield first, size(pull.by_position_bytes), str(moved)
    yield second, size(pull.by_content_bytes), str(len(layers.new))
    yield third, size(pull.total_bytes), str(layers.after)


def pull_notes(diff: Diff) -> tuple[str, ...]:
    """Return what the sizes count, and what they leave out."""
    if diff.layers is None or not diff.layers.differ:
        return ()
    pull = diff.layers.pull
    base = ("the new base comes on top: its size is not known here",) if pull.base_changed else ()
    unsized = (f"{plural(pull.unsized, 'layer')} to pull: no size before built",) if pull.unsized else ()
    return (_MEASURES[pull.measure], *base, *unsized)


def _files(diff: Diff, most: int | None) -> Table | None:
    if diff.files is None:
        return None
    shown = diff.files if most is None else diff.files[:most]
    title = f"{plural(len(diff.files), 'file')}: {counted(item.kind for item in diff.files)}"
    header = ("FILE", *_columns(diff), "CHANGE")
    return Table(title, header, tuple(map(_file_row, shown)), long=True, left_out=len(diff.files) - len(shown))


def _file_row(item: FileChange) -> tuple[str, ...]:
    before = "" if item.before_bytes is None else f"{item.before_bytes:,}"
    after = "" if item.after_bytes is None else f"{item.after_bytes:,}"
    return item.path, before, after, item.kind
