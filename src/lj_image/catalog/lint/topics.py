"""The list of the texts that a family's notes have."""

from __future__ import annotations

from collections.abc import Iterator

from lj_image.catalog.lint.finding import Code, Finding, findings_of
from lj_image.catalog.lint.subject import FamilySubject
from lj_image.catalog.topics import read_topics
from lj_image.errors import ManifestError


def topics(subject: FamilySubject) -> Iterator[Finding]:
    """Find what keeps the notes from being written: unknown names, impossible ranges, texts that are not there."""
    try:
        read_topics(subject.family)
    except ManifestError as error:
        yield from findings_of(error, Code.INVALID_FILE)
