"""What `pip check` complains of, and whether the release said so beforehand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

# pip's wording, the same from 9 to 26: _internal/commands/check.py.
_MISSING: Final = re.compile(r"^(?P<name>\S+) (?P<version>\S+) requires (?P<wants>.+?), which is not installed\.$")
_CONFLICT: Final = re.compile(
    r"^(?P<name>\S+) (?P<version>\S+) has requirement (?P<wants>.+), but you have (?P<has>.+)\.$"
)
_CLEAN: Final = "No broken requirements found."


@dataclass(frozen=True, slots=True)
class Complaint:
    """One line of `pip check`."""

    line: str
    distribution: str | None
    """Normalised; None for a line of another form."""
    wants: str | None
    """The requirement that is not met; a bare name when it is not installed."""


def parse_complaints(text: str) -> tuple[Complaint, ...]:
    """Read the output of `pip check`."""
    lines = (line.strip() for line in text.splitlines())
    return tuple(_complaint(line) for line in lines if line and line != _CLEAN)


def _complaint(line: str) -> Complaint:
    found = _CONFLICT.match(line) or _MISSING.match(line)
    if found is None:
        return Complaint(line, None, None)
    return Complaint(line, canonicalize_name(found["name"]), found["wants"])


def unexpected(complaints: Iterable[Complaint], *expected: Mapping[str, Iterable[str]]) -> tuple[Complaint, ...]:
    """Return the complaints that none of the tables (distribution -> requirements) foresees."""
    foreseen: dict[str, list[str]] = {}
    for table in expected:
        for name, requirements in table.items():
            foreseen.setdefault(canonicalize_name(name), []).extend(requirements)
    return tuple(item for item in complaints if not _is_foreseen(item, foreseen))


def _is_foreseen(complaint: Complaint, foreseen: Mapping[str, list[str]]) -> bool:
    if complaint.distribution is None or complaint.wants is None:
        return False
    return any(_same(complaint.wants, text) for text in foreseen.get(complaint.distribution, ()))


def _same(said: str, foreseen: str) -> bool:
    """Compare requirements by name and versions: pip's versions quote markers and extras differently.

    Of a distribution that is not installed, pip says the name only; a name alone foresees every version.
    """
    try:
        left, right = Requirement(said), Requirement(foreseen)
    except InvalidRequirement:
        return said == foreseen
    if canonicalize_name(left.name) != canonicalize_name(right.name):
        return False
    return not left.specifier or not right.specifier or left.specifier == right.specifier
