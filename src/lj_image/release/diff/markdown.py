"""Diff -> a comment for a pull request: what matters is seen at once, long lists unfold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from lj_image.release.diff.compare import Diff
from lj_image.release.diff.report import DOWN, Table, base_line, heading, pull_notes, tables

# GitHub refuses a comment of more than 65,536 characters.
MOST_FILES: Final = 150
MOST_DOCKERFILE_LINES: Final = 300


def markdown(diff: Diff) -> str:
    """Return the comparison as GitHub-flavoured Markdown."""
    return "\n".join(_lines(diff)) + "\n"


def _lines(diff: Diff) -> Iterator[str]:
    yield f"### {_escaped(heading(diff))}"
    yield ""
    if (base := base_line(diff)) is not None:
        yield from (_escaped(base), "")
    if not diff.differs:
        yield from ("No difference.", "")
    for table in tables(diff, most_files=MOST_FILES):
        yield from _folded(table.title, _table(table)) if table.long else _open(table)
    if diff.dockerfile:
        yield from _folded("Dockerfile", _dockerfile(diff.dockerfile))
    yield from (f"- {_escaped(note)}" for note in (*pull_notes(diff), *diff.notes))


def _open(table: Table) -> Iterator[str]:
    yield f"**{_escaped(table.title)}**"
    yield ""
    yield from _table(table)
    yield ""


def _folded(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"<details><summary>{_escaped(title)}</summary>"
    yield ""  # GitHub reads Markdown inside HTML only after an empty line
    yield from lines
    yield ""
    yield "</details>"
    yield ""


def _table(table: Table) -> Iterator[str]:
    yield _row(name.capitalize() if name.isupper() else name for name in table.header)
    yield "|" + " --- |" * len(table.header)
    yield from (_row(f"**{DOWN}**" if cell == DOWN else _escaped(cell) for cell in row) for row in table.rows)
    if table.left_out:
        yield ""
        yield f"… and {table.left_out:,} more"


def _dockerfile(lines: tuple[str, ...]) -> Iterator[str]:
    # Longer than any fence that a Dockerfile may hold.
    yield "``````diff"
    yield from lines[:MOST_DOCKERFILE_LINES]
    yield "``````"
    if (more := len(lines) - MOST_DOCKERFILE_LINES) > 0:
        yield f"… and {more:,} more lines"


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _escaped(text: str) -> str:
    """Take from a text what would be markup: cells, emphasis, links and HTML."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for mark in ("\\", "|", "`", "*", "_", "[", "]"):
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())
