"""Texts against the table of versions: what a release says must be what it promises, and must have happened."""

from __future__ import annotations

from collections.abc import Iterator

from lj_image.catalog import schema
from lj_image.catalog.changes import change_of
from lj_image.catalog.lint.finding import Code, Finding
from lj_image.catalog.lint.mentions import Mention, says
from lj_image.catalog.lint.subject import ReleaseSubject, Scope, place_in_list
from lj_image.catalog.lint.texts import WrittenText, texts_of_release
from lj_image.catalog.promises import Promised, canonical_id
from lj_image.errors import Location

CHECKED = ("highlight", "fix", "downgrade")
"""What tells of this release's versions; the other roles speak of versions elsewhere."""


def texts_against_table(subject: ReleaseSubject) -> Iterator[Finding]:
    """Find versions in highlights, fixes and reasons that the release does not promise, and upgrades that are none."""
    for text in texts_of_release(subject.entry):
        if text.role in CHECKED:
            for _, words, place in text.by_language():
                for mention in subject.family.mentions.find(words):
                    yield from _judge(subject, text, mention, place)


def _judge(subject: ReleaseSubject, text: WrittenText, mention: Mention, place: Location) -> Iterator[Finding]:
    yield from _wrong_version_before(subject, mention, place)
    if not (promised := subject.versions(mention.component)):
        return  # no table to hold it against
    known = promised
    if text.role != "highlight":
        known = (*promised, *subject.versions_before(mention.component))  # a reason or fix may tell of the old one
    if mention.version is not None and not any(says(version, mention.version) for version in known):
        yield Finding(
            Code.TEXT_AGAINST_TABLE,
            f"the text says {mention.spelling} {mention.version}, "
            f"but {subject.name} promises {mention.component} {_either(promised)}",
            f"write {promised[0]} here, or promise {mention.version} under `components`",
            place,
        )
    elif text.role == "highlight" and mention.upgraded and _is_as_before(subject, mention.component):
        yield Finding(
            Code.UPGRADE_WITHOUT_CHANGE,
            f"the text announces an upgrade of {mention.spelling}, "
            f"which was {_either(subject.versions_before(mention.component))} in {subject.name_before} already",
            "take it out of this text, or correct its version under `components`",
            place,
        )


def _wrong_version_before(subject: ReleaseSubject, mention: Mention, place: Location) -> Iterator[Finding]:
    known = subject.versions_before(mention.component)
    # Where the catalog does not have the release that was published before, nobody here knows its versions.
    is_known = subject.name_before == (subject.entry.file.previous or subject.name_before)
    if mention.version_before is None or not known or not is_known:
        return
    if not any(says(version, mention.version_before) for version in known):
        yield Finding(
            Code.TEXT_AGAINST_TABLE,
            f"the text says that {mention.spelling} was {mention.version_before}, "
            f"but {subject.name_before} has {mention.component} {_either(known)}",
            f"write {known[0]} here",
            place,
        )


def _is_as_before(subject: ReleaseSubject, component_id: str) -> bool:
    """Say whether a component that the release before had has the same version in every scope."""
    pairs = [
        (_version(subject.promised, scope, component_id), _version(subject.promised_before, scope, component_id))
        for scope in subject.scopes
    ]
    return any(before for _, before in pairs) and all(
        change_of(component_id, before, after) is None for after, before in pairs
    )


def _version(table: dict[Scope, dict[str, Promised]], scope: Scope, component_id: str) -> str | None:
    found = table[scope].get(component_id)
    return found.promise.version if found else None


def highlights_of_nothing(subject: ReleaseSubject) -> Iterator[Finding]:
    """Find components of a highlight that did not change, so that there is no derived line to stand for."""
    since = f" since {subject.name_before}" if subject.before else ""
    for position, highlight in enumerate(subject.entry.file.highlights):
        names = highlight.components if isinstance(highlight, schema.HighlightEntry) else []
        for name in names:
            if not _has_changed(subject, canonical_id(subject.family, name)):
                yield Finding(
                    Code.HIGHLIGHT_WITHOUT_CHANGE,
                    f"{name} stands under `components` of a highlight, but nothing about it changed{since}",
                    "name only components whose version, features or architectures changed",
                    place_in_list(subject.entry, ("highlights", position, "components"), name),
                )


def _has_changed(subject: ReleaseSubject, component_id: str) -> bool:
    return any(
        _is_other(subject.promised_before[scope].get(component_id), subject.promised[scope].get(component_id))
        for scope in subject.scopes
    )


def _is_other(before: Promised | None, after: Promised | None) -> bool:
    if before is None or after is None:
        return before is not after
    old, new = before.promise, after.promise
    return (
        change_of("", old.version, new.version) is not None
        or old.features != new.features
        or old.architectures != new.architectures
    )


def _either(versions: tuple[str, ...]) -> str:
    return " or ".join(versions)
