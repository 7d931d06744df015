"""Every text that people write into manifests; and those that a family's second language lacks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from lj_image.catalog import schema
from lj_image.catalog.catalog import Family, ReleaseEntry
from lj_image.catalog.lint.finding import Code, Finding
from lj_image.catalog.lint.subject import FamilySubject, FileSubject
from lj_image.catalog.text import Language
from lj_image.documents.nodes import Document, KeyPath
from lj_image.errors import Location

Role = Literal["highlight", "fix", "downgrade", "stands_in_for", "left_out", "unavailable", "notes"]


@dataclass(frozen=True, slots=True)
class WrittenText:
    """A text of a manifest in the languages it was written in."""

    role: Role
    entry: schema.TextEntry | schema.HighlightEntry
    document: Document
    path: KeyPath

    @property
    def location(self) -> Location:
        """Where the text, or the mapping of its languages, stands."""
        return self.document.place_of(self.path)

    def by_language(self) -> Iterator[tuple[Language, str, Location]]:
        """Yield each language's text, its line breaks made spaces, and where it stands."""
        if isinstance(self.entry, str):
            yield "en", _one_line(self.entry), self.location
            return
        yield "en", _one_line(self.entry.en), self.document.place_of((*self.path, "en"))
        if self.entry.zh is not None:
            yield "zh", _one_line(self.entry.zh), self.document.place_of((*self.path, "zh"))


def texts_of_family(family: Family) -> Iterator[WrittenText]:
    """Yield the texts of `image.yaml`."""
    file, document = family.file, family.document
    if file.notes is not None:
        yield WrittenText("notes", file.notes.product, document, ("notes", "product"))
        yield WrittenText("notes", file.notes.scenario, document, ("notes", "scenario"))
    for component_id, entry in file.components.items():
        path = ("components", component_id)
        for variant, source in entry.sources.items():
            if isinstance(source, schema.PipKind) and source.stands_in_for is not None:
                place = (*path, "sources", variant, "stands_in_for")
                yield WrittenText("stands_in_for", source.stands_in_for, document, place)
        for variant, reason in entry.left_out.items():
            yield WrittenText("left_out", reason, document, (*path, "left_out", variant))


def texts_of_release(entry: ReleaseEntry) -> Iterator[WrittenText]:
    """Yield the texts of a release's own file."""
    file, document = entry.file, entry.document
    for position, highlight in enumerate(file.highlights):
        yield WrittenText("highlight", highlight, document, ("highlights", position))
    for position, fix in enumerate(file.fixes):
        yield WrittenText("fix", fix, document, ("fixes", position))
    yield from _promise_texts(file.components, document, ("components",))
    for variant, own in file.variants.items():
        if own.unavailable is not None:
            yield WrittenText("unavailable", own.unavailable, document, ("variants", variant, "unavailable"))
        yield from _promise_texts(own.components, document, ("variants", variant, "components"))


def _promise_texts(
    components: dict[str, str | schema.Promise], document: Document, path: KeyPath
) -> Iterator[WrittenText]:
    for name, promise in components.items():
        if isinstance(promise, schema.Promise):
            if promise.downgrade is not None:
                yield WrittenText("downgrade", promise.downgrade, document, (*path, name, "downgrade"))
            if promise.stands_in_for is not None:
                yield WrittenText("stands_in_for", promise.stands_in_for, document, (*path, name, "stands_in_for"))


def family_translations(subject: FamilySubject) -> Iterator[Finding]:
    """Find the texts of `image.yaml` that lack the family's second language."""
    return _untranslated(subject.family, texts_of_family(subject.family))


def release_translations(subject: FileSubject) -> Iterator[Finding]:
    """Find the texts of a release that lack the family's second language."""
    return _untranslated(subject.family, texts_of_release(subject.entry))


def _untranslated(family: Family, texts: Iterator[WrittenText]) -> Iterator[Finding]:
    notes = family.file.notes
    if notes is None or "zh" not in notes.languages:
        return
    for text in texts:
        if "zh" not in {language for language, words, _ in text.by_language() if words}:
            yield Finding(
                Code.MISSING_TRANSLATION,
                f"{_named(text)} has no Chinese, in which {family.name} is published too",
                "write `zh:` beside `en:`: {en: …, zh: …}",
                text.location,
            )


def _named(text: WrittenText) -> str:
    return ".".join(map(str, text.path))


def _one_line(text: str) -> str:
    return " ".join(text.split())
