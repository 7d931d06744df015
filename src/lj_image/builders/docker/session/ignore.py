"""Path patterns as BuildKit uses them: the lines of a .dockerignore, and the sources of COPY and ADD.

Semantics: moby/patternmatcher. A pattern covers what it matches and everything below; `!` takes back; the last
pattern that says something wins. Unlike a shell, `*` stops at `/`, and `**` does not.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_TOKEN = re.compile(r"(\*\*/?)|(\*)|(\?)|(\[[^\]]*\])|(\\?.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Rule:
    covers: bool
    """False for a `!` pattern."""
    expression: re.Pattern[str]


class PathPatterns:
    """An ordered list of patterns that each path is asked against."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._rules = tuple(_rules(patterns))

    def __bool__(self) -> bool:
        return bool(self._rules)

    def cover(self, path: str) -> bool:
        """Tell whether a relative path, or a folder above it, is matched and not taken back."""
        family = tuple(_family(path))
        covered = False
        for rule in self._rules:
            if any(rule.expression.fullmatch(member) for member in family):
                covered = rule.covers
        return covered


def _rules(patterns: Iterable[str]) -> Iterator[_Rule]:
    for line in patterns:
        pattern = line.strip()
        covers = not pattern.startswith("!")
        pattern = posixpath.normpath(pattern.removeprefix("!").strip() or ".").strip("/")
        if pattern == ".":  # says nothing, as in moby: the root itself is never a member
            continue
        yield _Rule(covers, re.compile(_TOKEN.sub(_translate, pattern), re.DOTALL))


def _translate(token: re.Match[str]) -> str:
    deep, star, question, character_class, literal = token.groups()
    if deep:
        return "(?:.*/)?" if deep.endswith("/") else ".*"
    if star or question:
        return "[^/]*" if star else "[^/]"
    return str(character_class or re.escape(literal[-1]))


def _family(path: str) -> Iterator[str]:
    """Yield the path and the folders above it, nearest first."""
    while path:
        yield path
        path = posixpath.dirname(path)
