"""Releases in their order: what came before must be older."""

from __future__ import annotations

from collections.abc import Iterator

from lj_image.catalog.lint.finding import Code, Finding
from lj_image.catalog.lint.subject import FileSubject
from lj_image.catalog.versions import leading_numbers


def order(subject: FileSubject) -> Iterator[Finding]:
    """Find a `previous` that is not older than its release, and an `inherits` that is newer than `previous`."""
    file, document = subject.entry.file, subject.entry.document
    if file.previous and _is_newer_or_same(file.previous, subject.name) and not _is_its_own_parent(subject):
        yield Finding(
            Code.PREVIOUS_NOT_OLDER,
            f"previous: {file.previous} is not older than {subject.name}",
            "name the release that was published before this one",
            document.place_of(("previous",)),
        )
    latest = file.previous if file.previous and not _is_newer_or_same(file.previous, subject.name) else None
    if file.inherits and (_is_newer(file.inherits, latest) if latest else _is_newer(file.inherits, subject.name)):
        yield Finding(
            Code.INHERITS_NOT_OLDER,
            f"inherits: {file.inherits} is newer than "
            + (f"{latest}, which is called the release before" if latest else f"{subject.name} itself"),
            "inherit from `previous` or an older release; or correct `previous`",
            document.place_of(("inherits",)),
        )


def _is_its_own_parent(subject: FileSubject) -> bool:
    """Say whether the release names itself, which is said of its inheritance."""
    return subject.entry.file.inherits is None and subject.entry.file.previous == subject.name


def _is_newer(release: str, other: str) -> bool:
    return leading_numbers(release) > leading_numbers(other)


def _is_newer_or_same(release: str, other: str) -> bool:
    return leading_numbers(release) >= leading_numbers(other)
