"""Runs the rules over a catalog; a file that cannot be read is a finding, and the others are checked all the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.lint.finding import Code, Finding, findings_of
from lj_image.catalog.lint.rules import FAMILY_RULES, FILE_RULES, RELEASE_RULES
from lj_image.catalog.lint.subject import FamilyReadOnce, FamilySubject, FileSubject, ReleaseSubject
from lj_image.errors import Location, ManifestError

Subject = TypeVar("Subject")

_CONSEQUENCES: Final = (Code.INHERITANCE, Code.RESOLUTION)
"""What follows from a fault that may have been found by name; the name is worth more."""


def lint(catalog: Catalog, release: str | None = None) -> tuple[Finding, ...]:
    """Return every finding once, in the order of files and lines.

    With a release, written as `25.02` or `image/25.02`, only the files that it is made of are looked at, and only it is
    judged against the release before. Raises UsageError for one that does not exist.
    """
    if release is None:
        found = [item for name in catalog.family_names for item in _family_findings(catalog, name)]
    else:
        family, name = catalog.find(release)
        found = list(_family_findings(catalog, family.name, name))
    return tuple(sorted(_once(found), key=_place))


def _family_findings(catalog: Catalog, name: str, only: str | None = None) -> Iterator[Finding]:
    try:
        found = catalog.family(name)
    except ManifestError as error:
        yield from findings_of(error, Code.INVALID_FILE)
        return
    family = FamilyReadOnce(found.folder, found.file, found.document)
    yield from _apply(FAMILY_RULES, FamilySubject(catalog, family))
    for release in _made_of(family, only) if only else family.release_names:
        yield from _file_findings(catalog, family, release)
    for release in (only,) if only else family.release_names:
        yield from _release_findings(catalog, family, release)


def _made_of(family: FamilyReadOnce, release: str) -> tuple[str, ...]:
    """Return the names of the files that a release is made of, as far as its inheritance can be followed."""
    try:
        return tuple(entry.file.release for entry in family.chain(release))
    except ManifestError:
        return (release,)


def _file_findings(catalog: Catalog, family: FamilyReadOnce, name: str) -> Iterator[Finding]:
    try:
        entry = family.release(name)
    except ManifestError as error:
        yield from findings_of(error, Code.INVALID_FILE)
        return
    yield from _apply(FILE_RULES, FileSubject(catalog, family, entry))


def _release_findings(catalog: Catalog, family: FamilyReadOnce, name: str) -> Iterator[Finding]:
    try:
        chain = family.chain(name)
    except ManifestError as error:
        yield from findings_of(error, Code.INHERITANCE)
        return
    yield from _apply(RELEASE_RULES, ReleaseSubject(catalog, family, chain))


def _apply(rules: Iterable[Callable[[Subject], Iterable[Finding]]], subject: Subject) -> Iterator[Finding]:
    """Yield what each rule finds; one that needs what cannot be resolved says so, and the others go on."""
    for rule in rules:
        try:
            yield from rule(subject)
        except ManifestError as error:
            yield from findings_of(error, Code.RESOLUTION)


def _once(findings: list[Finding]) -> Iterator[Finding]:
    """Yield each finding once, and a mere consequence only where nothing else was found in its place."""
    told: set[tuple[str, Location | None]] = set()
    places: set[Location] = set()
    for finding in sorted(findings, key=lambda item: item.code in _CONSEQUENCES):
        is_told = (finding.message, finding.location) in told
        if is_told or (finding.code in _CONSEQUENCES and finding.location in places):
            continue
        told.add((finding.message, finding.location))
        if finding.location is not None:
            places.add(finding.location)
        yield finding


def _place(finding: Finding) -> tuple[str, int, int]:
    location = finding.location or Location("")
    return location.file, location.line or 0, location.column or 0
