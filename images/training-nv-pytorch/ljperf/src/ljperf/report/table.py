"""Tables of text, for a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Align columns: numbers (and their units) right, words left; no line ends in blanks.

    A cell may be any object, shown by `str`; None is shown as a dash. Raises ValueError on a row of another length.
    """
    cells = [[_text(cell) for cell in row] for row in rows]
    if any(len(row) != len(headers) for row in cells):
        raise ValueError(f"every row needs {len(headers)} cells")
    columns = list(zip(headers, *cells, strict=True))
    widths = [max(map(_width, column)) for column in columns]
    right = [bool(column[1:]) and all(_is_number(cell) for cell in column[1:]) for column in columns]
    lines = [headers, ["-" * width for width in widths], *cells]
    return "\n".join(_line(line, widths, right) for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = []
    for cell, width, on_the_right in zip(cells, widths, right, strict=True):
        blanks = " " * (width - _width(cell))
        padded.append(blanks + cell if on_the_right else cell + blanks)
    return "  ".join(padded).rstrip()


def _text(cell: object) -> str:
    return "-" if cell is None else str(cell)


def _width(text: str) -> int:
    """Columns of a terminal: East Asian wide characters take two."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def _is_number(text: str) -> bool:
    return text == "-" or text.lstrip("+-±~≤≥")[:1].isdigit()
