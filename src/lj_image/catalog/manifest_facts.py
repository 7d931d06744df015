"""The parts of a manifest that say something to people or to whoever runs the image: files' models become values."""

from __future__ import annotations

from lj_image.catalog import schema
from lj_image.catalog.catalog import Family, ReleaseEntry
from lj_image.catalog.promises import canonical_id
from lj_image.catalog.release import Driver, NotesFacts, RunFlags
from lj_image.catalog.text import Highlight, Text


def text_of(entry: schema.TextEntry) -> Text:
    """Return a text, translated or not; line breaks of the file are spaces."""
    if isinstance(entry, str):
        return Text(_one_line(entry))
    return Text(_one_line(entry.en), _one_line(entry.zh))


def highlights_of(family: Family, entry: ReleaseEntry) -> tuple[Highlight, ...]:
    """Return the lines that a release's own file adds to its feature list; raises ManifestError as `canonical_id`."""
    return tuple(_highlight(family, entry, position) for position in range(len(entry.file.highlights)))


def _highlight(family: Family, entry: ReleaseEntry, position: int) -> Highlight:
    item = entry.file.highlights[position]
    if isinstance(item, str):
        return Highlight(Text(_one_line(item)))
    components = (
        canonical_id(family, name, entry.document.place_of(("highlights", position, "components", number)))
        for number, name in enumerate(item.components)
    )
    return Highlight(Text(_one_line(item.en), _one_line(item.zh) if item.zh else None), tuple(components))


def driver_of(chain: tuple[ReleaseEntry, ...]) -> Driver | None:
    """Return the drivers of a release: the nearest entry, whose short form keeps the lists of the one before."""
    found: Driver | None = None
    for item in chain:
        match item.file.driver:
            case None:
                continue
            case str(requires):
                found = Driver(requires, found.data_centre, found.refused) if found else Driver(requires)
            case entry:
                found = Driver(entry.requires, tuple(entry.data_centre.items()), tuple(entry.refused))
    return found


def architectures_of(chain: tuple[ReleaseEntry, ...]) -> tuple[str, ...]:
    """Return the architectures that a release is made for: the nearest entry's, or amd64 where none names any."""
    named = next((item.file.architectures for item in reversed(chain) if item.file.architectures), ["amd64"])
    return tuple(named)


def run_flags(entry: schema.RunEntry) -> RunFlags:
    """Return how a container of the image is run."""
    return RunFlags(entry.ipc, entry.network, entry.privileged, entry.shm_size)


def notes_of(entry: schema.NotesEntry | None) -> NotesFacts | None:
    """Return what the notes of every release of a family say."""
    if entry is None:
        return None
    return NotesFacts(text_of(entry.product), text_of(entry.scenario), entry.framework, tuple(entry.languages))


def _one_line(text: str) -> str:
    return " ".join(text.split())
