"""`images/<image>/notes/topics.yaml`: which texts the notes of a family have, for a release in a variant."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from lj_image.catalog.catalog import Family, shown
from lj_image.catalog.text import Language, Text
from lj_image.catalog.versions import leading_numbers
from lj_image.errors import ManifestError
from lj_image.suggest import did_you_mean

if TYPE_CHECKING:  # late: notes that were read before are told without validating anything
    from lj_image.catalog.schema import TopicEntry, TopicsFile
    from lj_image.documents.nodes import Document, KeyPath

TEXTS: Final = "notes"
"""The folder of a family's texts, in the image's own."""

Section = Literal["assets", "enhancements", "enable", "launch", "usage", "issues"]


@dataclass(frozen=True, slots=True)
class Topic:
    """A text of the family about one subject."""

    id: str
    section: Section
    title: Text

    def template(self, language: Language) -> str:
        """Return the name of its template in a language."""
        return template_of(self.id, language)


@dataclass(frozen=True, slots=True)
class Topics:
    """What a family adds to the note of one release in one variant."""

    topics: tuple[Topic, ...] = ()
    components_title: Text | None = None
    """What the family calls the list of components, when not core components."""
    tag_row: bool = False
    """Whether the table of contents names the tag."""
    example_regions: tuple[str, ...] = ()


def template_of(topic: str, language: Language) -> str:
    """Return the name of a topic's template in a language."""
    return f"{topic}.{language}.md.j2"


def topics_of(family: Family, release: str, variant: str) -> Topics:
    """Return the topics of a release in a variant; a family without the file has none. Raises as `read_topics`."""
    file = read_topics(family)
    regions = family.file.endpoints.vpc.region_names[:2]
    if file is None:
        return Topics(example_regions=regions)
    from lj_image.catalog.manifest_facts import text_of

    return Topics(
        topics=tuple(
            Topic(entry.topic, entry.section, text_of(entry.title))
            for entry in file.topics
            if _is_about(entry, release, variant)
        ),
        components_title=text_of(file.contents.components) if file.contents.components else None,
        tag_row=file.contents.tag,
        example_regions=tuple(file.example_regions or regions),
    )


def read_topics(family: Family) -> TopicsFile | None:
    """Read and check the list of a family's texts; None for a family without one.

    Raises ManifestError with all that is wrong: the file itself, unknown variants and regions, impossible ranges, and
    texts that are not there in a language of the family.
    """
    path = family.folder / TEXTS / "topics.yaml"
    if not path.exists():
        return None
    from lj_image.catalog.schema import TopicsFile
    from lj_image.documents.models import read_model

    file, document = read_model(path, TopicsFile, shown(path))
    faults = tuple(_faults(family, file, document))
    if faults:
        first, *others = faults
        raise ManifestError(first.message, hint=first.hint, location=first.location, others=others)
    return file


def _is_about(entry: TopicEntry, release: str, variant: str) -> bool:
    """Say whether a topic belongs into the note of a release; a month's repaired releases belong to the month."""
    numbers = leading_numbers(release)
    first, last = leading_numbers(entry.from_ or ""), leading_numbers(entry.until or "")
    in_range = first <= numbers and (not last or numbers[: len(last)] <= last)
    return in_range and (entry.variants is None or variant in entry.variants)


def _faults(family: Family, file: TopicsFile, document: Document) -> Iterator[ManifestError]:
    regions = family.file.endpoints.vpc.region_names
    yield from _unknown(file.example_regions or [], regions, ("example_regions",), document)
    for position, entry in enumerate(file.topics):
        path = ("topics", position)
        yield from _unknown(entry.variants or [], family.file.variants, (*path, "variants"), document)
        yield from _impossible_range(entry, path, document)
        yield from _missing_texts(family, entry, path, document)


def _unknown(
    names: Iterable[str], known: Collection[str], path: KeyPath, document: Document
) -> Iterator[ManifestError]:
    key = path[-1]
    for position, name in enumerate(names):
        if name not in known:
            yield ManifestError(
                f"{key}: unknown name {name!r}",
                hint=did_you_mean(name, known, noun=str(key)),
                location=document.place_of((*path, position)),
            )


def _impossible_range(entry: TopicEntry, path: KeyPath, document: Document) -> Iterator[ManifestError]:
    if entry.from_ and entry.until and leading_numbers(entry.until) < leading_numbers(entry.from_):
        yield ManifestError(
            f"topic {entry.topic!r}: no release is from {entry.from_} until {entry.until}",
            hint="let `until` be the later one, or leave it out",
            location=document.place_of((*path, "until")),
        )


def _missing_texts(family: Family, entry: TopicEntry, path: KeyPath, document: Document) -> Iterator[ManifestError]:
    for language in family.file.notes.languages if family.file.notes else ():
        text = family.folder / TEXTS / template_of(entry.topic, language)
        if not text.is_file():
            yield ManifestError(
                f"topic {entry.topic!r} has no text in {language!r}",
                hint=f"write {shown(text)}",
                location=document.place_of((*path, "topic")),
            )
