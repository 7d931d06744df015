"""What a look at one part of the machine gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

State = Literal["ok", "warning", "problem"]
GIB: Final = 1024**3


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found, how bad it is, and how to mend it."""

    check: str
    """What was looked at, in a word or two."""
    state: State
    """`problem`: a build, or what a build needs, fails because of it."""
    found: str
    hint: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return what `--json` prints of it."""
        return {"check": self.check, "state": self.state, "found": self.found, "hint": self.hint}


def ok(check: str, found: str) -> Finding:
    """Return a finding that needs nothing done."""
    return Finding(check, "ok", found)


def warning(check: str, found: str, hint: str | None = None) -> Finding:
    """Return a finding that some command may suffer from."""
    return Finding(check, "warning", found, hint)


def problem(check: str, found: str, hint: str | None = None) -> Finding:
    """Return a finding because of which builds fail."""
    return Finding(check, "problem", found, hint)


def free_space(check: str, free_bytes: int, place: str, *, wanted_bytes: int, needed_bytes: int) -> Finding:
    """Judge the free space of a disk."""
    found = f"{free_bytes / GIB:,.1f} GiB free in {place}"
    hint = f"a release takes {wanted_bytes / GIB:.0f} GiB; make room"
    if free_bytes < needed_bytes:
        return problem(check, found, hint)
    return warning(check, found, hint) if free_bytes < wanted_bytes else ok(check, found)
