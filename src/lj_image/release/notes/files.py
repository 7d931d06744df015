"""Notes as files, each of which appears whole or not at all."""

from __future__ import annotations

from pathlib import Path

from lj_image.release.notes.note import NoteFacts
from lj_image.release.notes.render import render_notes
from lj_image.templating import Templates
from lj_image.whole import write_whole


def write_notes(facts: NoteFacts, templates: Templates, folder: Path) -> tuple[Path, ...]:
    """Write `notes.<language>.md` and `.html` in each language of the family, and `notes.json`; return their paths.

    All are rendered before the first is written. Raises as `render_notes` does, and OSError of the disk.
    """
    texts = {
        f"notes.{language}.{form}": render_notes(facts, templates, language, form)
        for language in facts.languages
        for form in ("md", "html")
    }
    texts["notes.json"] = render_notes(facts, templates, facts.languages[0], "json")
    return tuple(write_note(folder / name, text) for name, text in texts.items())


def write_note(path: Path, text: str) -> Path:
    """Write one file by rename, making its folder; return its path."""
    write_whole(path, text)
    return path
