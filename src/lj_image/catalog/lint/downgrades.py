"""Versions that went down, each with a reason; and reasons for what did not go down."""

from __future__ import annotations

from collections.abc import Iterator

from lj_image.catalog.changes import change_of
from lj_image.catalog.lint.finding import Code, Finding
from lj_image.catalog.lint.subject import ReleaseSubject, Scope
from lj_image.catalog.promises import Promised
from lj_image.errors import Location


def downgrades(subject: ReleaseSubject) -> Iterator[Finding]:
    """Find versions lower than in the release before without a reason, in what all variants share and in each."""
    told: set[tuple[str, str, str]] = set()
    for scope in subject.comparable_scopes():
        before = subject.promised_before[scope]
        for component_id, after in subject.promised[scope].items():
            step = (component_id, old := _version(before.get(component_id)), after.promise.version)
            if step not in told and _is_lower(old, after) and not _has_reason(subject, after):
                told.add(step)
                yield _without_reason(subject, component_id, old, after, scope)


def _without_reason(subject: ReleaseSubject, component_id: str, old: str, after: Promised, scope: Scope) -> Finding:
    version = after.promise.version
    return Finding(
        Code.DOWNGRADE_WITHOUT_REASON,
        f"{component_id} {version} is lower than {old} of {subject.name_before}"
        + (f" in the variant {scope!r}" if scope else ""),
        f"say why: `{component_id}: {{version: {version}, downgrade: …}}`, or correct one of the two versions",
        _place_in_own_file(subject, after),
    )


def _has_reason(subject: ReleaseSubject, after: Promised) -> bool:
    """Say whether this release gives a reason; one that it inherits was given for another step."""
    return after.promise.downgrade is not None and _is_own(subject, after)


def _place_in_own_file(subject: ReleaseSubject, after: Promised) -> Location:
    """Return where the version stands; where it is inherited, the line that lets this release inherit it."""
    if _is_own(subject, after):
        return after.location
    key = "inherits" if subject.entry.file.inherits else "previous"
    return subject.entry.document.place_of((key,))


def _is_own(subject: ReleaseSubject, promised: Promised) -> bool:
    return promised.location.file == subject.entry.document.file


def reasons_for_nothing(subject: ReleaseSubject) -> Iterator[Finding]:
    """Find `downgrade` where the version is not lower than in the release before."""
    explained: dict[Location, tuple[str, Promised]] = {}
    needed: set[Location] = set()
    for scope in subject.scopes:
        for component_id, after in subject.promised[scope].items():
            if after.promise.downgrade is not None and _is_own(subject, after):
                explained[after.location] = (component_id, after)
                if _is_lower(_version(subject.promised_before[scope].get(component_id)), after):
                    needed.add(after.location)
    for place, (component_id, after) in explained.items():
        if place not in needed:
            yield _reason_for_nothing(subject, component_id, after)


def _reason_for_nothing(subject: ReleaseSubject, component_id: str, after: Promised) -> Finding:
    versions = " or ".join(subject.versions_before(component_id))
    than = f"{versions} of {subject.name_before}" if versions else "anything that a release before it promises"
    return Finding(
        Code.REASON_WITHOUT_DOWNGRADE,
        f"{component_id} has a reason for a downgrade, but {after.promise.version} is not lower than {than}",
        "delete `downgrade`, or correct the version",
        after.location,
    )


def _is_lower(old: str, after: Promised) -> bool:
    change = change_of("", old or None, after.promise.version)
    return change is not None and change.kind == "down"


def _version(promised: Promised | None) -> str:
    return promised.promise.version if promised else ""
