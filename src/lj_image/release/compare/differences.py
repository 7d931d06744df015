"""Two trees -> every difference between them, each with its excuse if it has one; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from lj_image.release.compare.expected import (
    RECORD_TITLE,
    RECORD_WHY,
    RULES,
    Aspect,
    Excuse,
    Rule,
    excuse,
    ignoring,
    record_rows,
)
from lj_image.release.compare.tree import Fact

_SHOWN_DIGITS = 12
_SHOWN_ROWS = 3


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that differs at one path."""

    path: str
    """Without a leading slash; empty for the root."""
    aspect: Aspect
    before: str
    """As a person reads it; empty where there is nothing."""
    after: str
    excuse: Excuse | None = None
    """Why it does not count."""


def differences(
    before: Mapping[str, Fact], after: Mapping[str, Fact], *, ignore: Iterable[str] = ()
) -> tuple[Difference, ...]:
    """Return all that differs between two trees, by path; `ignore` has globs of what is excused besides."""
    rules = (*RULES, *map(ignoring, ignore))
    found = (
        item for path in sorted(before.keys() | after.keys()) for item in _at(path, before.get(path), after.get(path))
    )
    return tuple(_excused(item, before, after, rules) for item in found)


def _at(path: str, old: Fact | None, new: Fact | None) -> Iterator[Difference]:
    """Yield what differs at a path; of two things of different type nothing but that, and their owners."""
    if old is None or new is None:
        if (fact := old or new) is not None:
            yield _alone(path, fact, is_before=new is None)
        return
    if old is new or old == new:
        return
    for aspect, one, other in _aspects(old, new):
        if one != other:
            yield Difference(path, aspect, one, other)


def _alone(path: str, fact: Fact, *, is_before: bool) -> Difference:
    told = _told(fact)
    return Difference(path, "only in A", told, "") if is_before else Difference(path, "only in B", "", told)


def _aspects(old: Fact, new: Fact) -> Iterator[tuple[Aspect, str, str]]:
    yield "type", old.kind, new.kind
    yield "owner", f"{old.uid}:{old.gid}", f"{new.uid}:{new.gid}"
    yield "xattrs", _xattrs(old), _xattrs(new)
    if old.kind != new.kind:
        return
    yield "mode", f"{old.mode:04o}", f"{new.mode:04o}"
    match old.kind:
        case "file":
            if old.content != new.content:
                yield "content", _content(old), _content(new)
        case "symlink" | "hard link":
            yield "link target", old.content, new.content
        case _:
            yield "device", old.content, new.content


def _xattrs(fact: Fact) -> str:
    return " ".join(f"{name}={value}" for name, value in fact.xattrs)


def _content(fact: Fact) -> str:
    return f"{fact.size_bytes:,} B, {fact.content[:_SHOWN_DIGITS]}…"


def _told(fact: Fact) -> str:
    """Return what is at a path, in a few words."""
    match fact.kind:
        case "file":
            return f"file {fact.mode:04o} {fact.uid}:{fact.gid}, {_content(fact)}"
        case "symlink" | "hard link":
            return f"{fact.kind} to {fact.content}"
        case _:
            return f"{fact.kind} {fact.mode:04o} {fact.uid}:{fact.gid} {fact.content}".rstrip()


def _excused(
    item: Difference, before: Mapping[str, Fact], after: Mapping[str, Fact], rules: tuple[Rule, ...]
) -> Difference:
    found = excuse(item.path, item.aspect, rules)
    if found is not None:
        return Difference(item.path, item.aspect, item.before, item.after, found)
    if item.aspect != "content":
        return item
    rows = record_rows(before[item.path], after[item.path])
    if rows is None:
        return item
    if not rows.before and not rows.after:
        return Difference(item.path, item.aspect, item.before, item.after, Excuse(RECORD_TITLE, RECORD_WHY))
    return Difference(item.path, item.aspect, _some(rows.before), _some(rows.after))


def _some(rows: tuple[str, ...]) -> str:
    more = f" and {len(rows) - _SHOWN_ROWS} more" if len(rows) > _SHOWN_ROWS else ""
    return f"{len(rows)} rows: {' | '.join(rows[:_SHOWN_ROWS])}{more}" if rows else "no other row"
