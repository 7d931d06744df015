"""Rows as text and as a JSON document."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Final

from ljperf.comm.library import Library
from ljperf.comm.sweep import Row

WIDTHS: Final = (12, 12, 9, 7, 11, 9, 9, 8)
COLUMNS: Final = ("size", "count", "type", "redop", "time", "algbw", "busbw", "#wrong")
UNITS: Final = ("(B)", "(elements)", "", "", "(us)", "(GB/s)", "(GB/s)", "")


def heading(operation: str, ranks: int, machines: int, library: Library) -> str:
    """Who measures what, and the columns."""
    where = f"{ranks} rank{'s' * (ranks != 1)} on {machines} machine{'s' * (machines != 1)}"
    return "\n".join([f"# {operation}: {where}, {library}", _line(COLUMNS, "#"), _line(UNITS, "#")])


def line(row: Row) -> str:
    """One row."""
    redop = "none" if row.operation == "all-gather" else "sum"
    rates = (f"{row.microseconds:.2f}", f"{row.algbw:.3f}", f"{row.busbw:.3f}")
    return _line((row.size, row.count, row.dtype, redop, *rates, row.wrong), " ")


def _line(cells: Sequence[object], first: str) -> str:
    text = "".join(str(cell).rjust(width) for cell, width in zip(cells, WIDTHS, strict=True))
    return (first + text[1:]).rstrip()


def average(rows: Iterable[Row]) -> str:
    """nccl-tests' last line."""
    buses = [row.busbw for row in rows]
    return f"# Avg bus bandwidth    : {sum(buses) / len(buses):.4g}" if buses else "# nothing was measured"


def document(rows: Iterable[Row], ranks: int, machines: int, library: Library, *, complete: bool) -> str:
    """For programs; `complete` is false while the sweep goes on, and stays false if it ends early."""
    found: dict[str, Any] = {
        "complete": complete,
        "ranks": ranks,
        "machines": machines,
        "library": asdict(library),
        "rows": [asdict(row) for row in rows],
    }
    return json.dumps(found, indent=2) + "\n"
