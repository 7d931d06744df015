"""A Comparison -> tables that people read, one line for CI, and JSON with everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any, Final, get_args

from lj_image.release.compare.compare import Comparison
from lj_image.release.compare.differences import Difference
from lj_image.release.compare.expected import ALONE, Aspect
from lj_image.release.compare.settings import Setting
from lj_image.release.diff.report import Table

ASPECTS: Final[tuple[Aspect, ...]] = get_args(Aspect)
MOST_ROWS: Final = 20
"""Of one table."""
_NOT_SET: Final = "not set"


def tables(found: Comparison, *, strict: bool = False, everything: bool = False) -> tuple[Table, ...]:
    """Return the tables that have rows: paths by what differs, configuration, what was expected, what is odd."""
    counted = found.counted(strict=strict)
    paths = [item for item in counted if isinstance(item, Difference)]
    every = (
        *(_of_aspect(aspect, [item for item in paths if item.aspect == aspect]) for aspect in ASPECTS),
        _configuration([item for item in counted if isinstance(item, Setting)]),
        *(() if strict else (_expected(found), _expected_paths(found) if everything else _NO_TABLE)),
        _noted(found),
    )
    return tuple(table if everything else _cut(table) for table in every if table.rows)


def result_line(found: Comparison, *, strict: bool = False) -> str:
    """Return the outcome in one line, for CI."""
    differ = found.differ(strict=strict)
    above = f" above {_counted(found.shared_layers, 'shared layer')}" if found.shared_layers else ""
    parts = [
        _counted(found.paths, "path") + above if found.paths or not above else f"all{above.removeprefix(' above')}"
    ]
    if differ:
        parts.append(_counted(len(found.counted(strict=strict)), "difference"))
    if not strict and (excused := found.excused()):
        parts.append(f"{_counted(len(excused), 'expected difference')} ({_by_title(excused)})")
    if found.noted:
        parts.append(f"{len(found.noted):,} noted")
    return f"{'different' if differ else 'same'}: {', '.join(parts)}"


def to_json(found: Comparison, *, strict: bool = False) -> dict[str, Any]:
    """Return everything for machines; nothing is cut."""
    return {
        "before": found.before,
        "after": found.after,
        "same": not found.differ(strict=strict),
        "strict": strict,
        "paths": found.paths,
        "shared_layers": found.shared_layers,
        "counted": len(found.counted(strict=strict)),
        "expected": len(found.excused()),
        "differences": [asdict(item) for item in found.differences],
        "configuration": [asdict(item) for item in found.settings],
        "noted": [{"side": item.side, **asdict(item.oddity)} for item in found.noted],
    }


_NO_TABLE: Final = Table("", (), ())


def _of_aspect(aspect: Aspect, items: list[Difference]) -> Table:
    if aspect in ALONE:
        alone = tuple((_shown(item.path), item.before or item.after) for item in items)
        return Table(f"{_counted(len(items), 'path')} {aspect}", ("PATH", "WHAT"), alone)
    rows = tuple((_shown(item.path), item.before or "-", item.after or "-") for item in items)
    return Table(f"{_counted(len(items), 'path')} with another {aspect}", ("PATH", "A", "B"), rows)


def _configuration(items: list[Setting]) -> Table:
    rows = tuple((item.name, _value(item.before), _value(item.after)) for item in items)
    return Table(f"{_counted(len(items), 'setting')} of the configuration", ("SETTING", "A", "B"), rows)


def _expected(found: Comparison) -> Table:
    counts = Counter(item.excuse for item in found.excused() if item.excuse is not None)
    rows = tuple((excuse.title, f"{count:,}", excuse.why) for excuse, count in counts.items())
    return Table(f"{_counted(counts.total(), 'expected difference')}", ("WHAT", "COUNT", "WHY"), tuple(sorted(rows)))


def _expected_paths(found: Comparison) -> Table:
    rows = tuple(_expected_rows(found))
    return Table("where they are", ("WHERE", "WHAT", "A", "B"), rows)


def _expected_rows(found: Comparison) -> Iterator[tuple[str, ...]]:
    for item in found.excused():
        if isinstance(item, Difference):
            yield _shown(item.path), item.aspect, item.before or "-", item.after or "-"
        else:
            yield item.name, "configuration", _value(item.before), _value(item.after)


def _noted(found: Comparison) -> Table:
    rows = tuple((_shown(item.oddity.path), item.oddity.what, item.side) for item in found.noted)
    return Table(f"{len(rows):,} noted", ("PATH", "WHAT", "IMAGE"), rows)


def _cut(table: Table) -> Table:
    left_out = max(0, len(table.rows) - MOST_ROWS)
    return Table(table.title, table.header, table.rows[:MOST_ROWS], left_out=left_out)


def _by_title(items: Iterable[Difference | Setting]) -> str:
    counts = Counter(item.excuse.title for item in items if item.excuse is not None)
    return ", ".join(f"{count:,} {title}" for title, count in sorted(counts.items()))


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _shown(path: str) -> str:
    return f"/{path}"


def _value(text: str | None) -> str:
    return _NOT_SET if text is None else text
