"""`images/<image>/notes/topics.yaml`: which texts the notes of a family have, for a release in a variant."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from lj_image.catalog.catalog import shown
from lj_image.catalog.manifest_facts import text_of
from lj_image.catalog.release import Release
from lj_image.catalog.text import Language
from lj_image.catalog.versions import leading_numbers
from lj_image.errors import ManifestError
from lj_image.release.notes.note import TEXTS, Topic
from lj_image.release.notes.told import Topics
from lj_image.suggest import did_you_mean

if TYPE_CHECKING:
    from lj_image.catalog.schema import TopicEntry, TopicsFile
    from lj_image.documents.nodes import Document


def topics_of(release: Release, variants: Iterable[str], languages: Iterable[Language]) -> Topics:
    """Read the topics of a release; a family without the file has none.

    Raises ManifestError for an unknown variant or region, an impossible range and a text that is not there.
    """
    path = release.folder / TEXTS / "topics.yaml"
    if not path.exists():
        return Topics(example_regions=release.endpoints.regions[:2])
    from lj_image.catalog.schema import TopicsFile
    from lj_image.documents.models import read_model

    file, document = read_model(path, TopicsFile, shown(path))
    for position, entry in enumerate(file.topics):
        _check_topic(entry, ("topics", position), document, tuple(variants))
        _require_texts(entry, ("topics", position), document, path.parent, languages)
    return Topics(
        topics=tuple(_topic(entry) for entry in file.topics if _is_about(entry, release)),
        components_title=text_of(file.contents.components) if file.contents.components else None,
        tag_row=file.contents.tag,
        example_regions=_example_regions(file, document, release.endpoints.regions),
    )


def _topic(entry: TopicEntry) -> Topic:
    return Topic(entry.topic, entry.section, text_of(entry.title))


def _is_about(entry: TopicEntry, release: Release) -> bool:
    """Say whether a topic belongs into the note of a release; a month's repaired releases belong to the month."""
    numbers = leading_numbers(release.name)
    first, last = leading_numbers(entry.from_ or ""), leading_numbers(entry.until or "")
    in_range = first <= numbers and (not last or numbers[: len(last)] <= last)
    return in_range and (entry.variants is None or release.variant in entry.variants)


def _check_topic(entry: TopicEntry, path: tuple[str, int], document: Document, variants: tuple[str, ...]) -> None:
    if entry.from_ and entry.until and leading_numbers(entry.until) < leading_numbers(entry.from_):
        raise ManifestError(
            f"topic {entry.topic!r}: no release is from {entry.from_} until {entry.until}",
            hint="let `until` be the later one, or leave it out",
            location=document.place_of((*path, "until")),
        )
    for position, name in enumerate(entry.variants or ()):
        if name not in variants:
            raise ManifestError(
                f"topic {entry.topic!r}: no variant {name!r}",
                hint=did_you_mean(name, variants, noun="variants"),
                location=document.place_of((*path, "variants", position)),
            )


def _require_texts(
    entry: TopicEntry, path: tuple[str, int], document: Document, folder: Path, languages: Iterable[Language]
) -> None:
    for language in languages:
        text = folder / _topic(entry).template(language)
        if not text.is_file():
            raise ManifestError(
                f"topic {entry.topic!r} has no text in {language!r}",
                hint=f"write {shown(text)}",
                location=document.place_of((*path, "topic")),
            )


def _example_regions(file: TopicsFile, document: Document, regions: tuple[str, ...]) -> tuple[str, ...]:
    for position, name in enumerate(file.example_regions or ()):
        if name not in regions:
            raise ManifestError(
                f"example_regions: no region {name!r}",
                hint=did_you_mean(name, regions, noun="regions"),
                location=document.place_of(("example_regions", position)),
            )
    return tuple(file.example_regions or regions[:2])
