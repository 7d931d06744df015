"""Names in manifests: each known, written once, and in a place where it means something."""

from __future__ import annotations

from collections.abc import Iterator

from lj_image.catalog import schema
from lj_image.catalog.catalog import Family, ReleaseEntry
from lj_image.catalog.lint.finding import Code, Finding, findings_of
from lj_image.catalog.lint.subject import FamilySubject, FileSubject, ReleaseSubject, place_in_list
from lj_image.catalog.promises import canonical_id, promises
from lj_image.errors import Location, ManifestError
from lj_image.suggest import did_you_mean


def spellings(subject: FamilySubject) -> Iterator[Finding]:
    """Find spellings that mean two components."""
    family = subject.family
    owner: dict[str, str] = {name: name for name in family.file.components}
    for component_id, entry in family.file.components.items():
        for position, alias in enumerate(entry.aliases):
            other = owner.setdefault(alias, component_id)
            if other != component_id:
                yield Finding(
                    Code.AMBIGUOUS_SPELLING,
                    f"{alias!r} means {other} and {component_id}",
                    "take it away from one of the two",
                    family.document.place_of(("components", component_id, "aliases", position)),
                )


def family_variants(subject: FamilySubject) -> Iterator[Finding]:
    """Find components with a source or a reason to be left out for an unknown variant, or with both for one."""
    family = subject.family
    for component_id, entry in family.file.components.items():
        for key, variants, what in (
            ("sources", entry.sources, "has a source for"),
            ("left_out", entry.left_out, "is left out of"),
        ):
            for variant in variants:
                if variant not in family.file.variants:
                    place = family.document.key_places["components", component_id, key, variant]
                    yield _unknown_variant(family, f"components.{component_id} {what} {variant!r}", variant, place)
        for variant in entry.left_out:
            if variant in entry.sources:
                yield Finding(
                    Code.SOURCE_AND_LEFT_OUT,
                    f"components.{component_id} is left out of {variant!r}, for which it has a source",
                    "delete one of the two",
                    family.document.key_places["components", component_id, "left_out", variant],
                )


def release_variants(subject: FileSubject) -> Iterator[Finding]:
    """Find unknown variants in a release."""
    for variant in subject.entry.file.variants:
        if variant not in subject.family.file.variants:
            place = subject.entry.document.key_places["variants", variant]
            yield _unknown_variant(subject.family, f"variants has {variant!r}", variant, place)


def _unknown_variant(family: Family, what: str, variant: str, place: Location) -> Finding:
    hint = did_you_mean(variant, family.file.variants, noun="variants")
    return Finding(Code.UNKNOWN_VARIANT, f"{what}, which is no variant of {family.name}", hint, place)


def component_names(subject: FileSubject) -> Iterator[Finding]:
    """Find unknown components, and those that stand twice in one list or table, whatever their spelling."""
    for names in _lists_of_components(subject.entry):
        seen: dict[str, str] = {}
        for name, place in names:
            try:
                component_id = canonical_id(subject.family, name, place)
            except ManifestError as error:
                yield from findings_of(error, Code.UNKNOWN_COMPONENT)
                continue
            if component_id in seen:
                yield _twice(name, seen[component_id], place)
            seen[component_id] = name


def _lists_of_components(entry: ReleaseEntry) -> Iterator[list[tuple[str, Location]]]:
    """Yield the names in each place of a release that holds component names, with where each stands."""
    file, document = entry.file, entry.document
    yield [(name, document.key_places["components", name]) for name in file.components]
    for variant, own in file.variants.items():
        yield [(name, document.key_places["variants", variant, "components", name]) for name in own.components]
    yield [(name, document.place_of(("unlisted", position))) for position, name in enumerate(file.unlisted)]
    for position, highlight in enumerate(file.highlights):
        if isinstance(highlight, schema.HighlightEntry):
            path = ("highlights", position, "components")
            yield [(name, document.place_of((*path, number))) for number, name in enumerate(highlight.components)]


def _twice(name: str, first: str, place: Location) -> Finding:
    message = f"{name!r} stands here twice" if name == first else f"{name!r} and {first!r} are the same component"
    return Finding(Code.COMPONENT_TWICE, message, "keep one of the two", place)


def unlisted(subject: ReleaseSubject) -> Iterator[Finding]:
    """Find components under `unlisted` that the release would not have anyway, or that it promises itself."""
    inherited = {name for scope in subject.scopes for name in promises(subject.family, subject.chain[:-1], scope)}
    own = _own_ids(subject)
    for name in subject.entry.file.unlisted:
        component_id = canonical_id(subject.family, name)
        if component_id in own or component_id not in inherited:
            why = "promises it itself" if component_id in own else "inherits no such component"
            yield Finding(
                Code.UNLISTED_NOT_INHERITED,
                f"{name} is unlisted, but {subject.name} {why}",
                "`unlisted` takes away what is inherited: delete it there, or the promise",
                place_in_list(subject.entry, ("unlisted",), name),
            )


def _own_ids(subject: ReleaseSubject) -> set[str]:
    file = subject.entry.file
    tables = (file.components, *(own.components for own in file.variants.values()))
    return {canonical_id(subject.family, name) for table in tables for name in table}
