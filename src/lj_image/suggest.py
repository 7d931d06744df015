"""Turn an unknown name into the closest known ones, for the hint of an error."""

from __future__ import annotations

from collections.abc import Iterable


def closest(name: str, known: Iterable[str], *, most: int = 3) -> tuple[str, ...]:
    """Return up to `most` known names that look like `name`, best first; case is ignored."""
    import difflib  # late: only a mistake needs it

    by_folded: dict[str, str] = {}
    for item in known:  # of spellings that differ by case, the first: the id, not its alias
        by_folded.setdefault(item.casefold(), item)
    matches = difflib.get_close_matches(name.casefold(), by_folded, n=most, cutoff=0.5)
    return tuple(by_folded[match] for match in matches)


def did_you_mean(name: str, known: Iterable[str], *, noun: str) -> str:
    """Return a hint sentence: the closest names, or all of them when none is close."""
    known = tuple(known)
    names = closest(name, known)
    if names:
        return f"did you mean {' or '.join(names)}?"
    return f"known {noun}: {', '.join(known) or 'none'}"
