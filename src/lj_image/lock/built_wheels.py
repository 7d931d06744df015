"""Which wheels in the store were built here from sources; `builders/source_wheels/notes.py` writes these notes.

<cache>/wheels/<hex>.json   one wheel, and the source, base and environment that it was built from
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class BuiltWheel:
    """A wheel, and the source distribution that it was built from."""

    note: Path
    file: str
    sha256: str
    source_sha256: str


def built_wheels(cache_dir: Path) -> tuple[BuiltWheel, ...]:
    """Return every wheel that was built on this machine; a note that cannot be read counts as absent."""
    notes = sorted((cache_dir / "wheels").glob("*.json"))
    return tuple(wheel for note in notes if (wheel := _read(note)) is not None)


def _read(note: Path) -> BuiltWheel | None:
    try:
        facts = json.loads(note.read_text())
        return BuiltWheel(note, str(facts["file"]), str(facts["sha256"]), str(facts["source"]["sha256"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
