"""What a release promises: component ids and versions, inherited along `previous`, whatever they are spelled like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lj_image.catalog import schema
from lj_image.catalog.catalog import Family, ReleaseEntry
from lj_image.catalog.project import read_project
from lj_image.errors import Location, ManifestError, UsageError
from lj_image.suggest import did_you_mean


@dataclass(frozen=True, slots=True)
class Promised:
    """One component's promise and where it was written."""

    promise: schema.Promise
    location: Location


def promises(family: Family, chain: tuple[ReleaseEntry, ...], variant: str | None = None) -> dict[str, Promised]:
    """Return canonical id -> promise, inherited along the chain, with the variant's own ones added.

    The family's own projects are promised by themselves in the variants that have them.
    """
    merged: dict[str, Promised] = dict(_of_projects(family, variant)) if variant is not None else {}
    for entry in chain:
        merged.update(_promises_at(family, entry, ("components",), entry.file.components))
        if variant is not None and (own := entry.file.variants.get(variant)) is not None:
            merged.update(_promises_at(family, entry, ("variants", variant, "components"), own.components))
        for position, name in enumerate(entry.file.unlisted):
            place = entry.document.place_of(("unlisted", position))
            merged.pop(canonical_id(family, name, place), None)
    return merged


def _of_projects(family: Family, variant: str) -> Iterator[tuple[str, Promised]]:
    for component_id, entry in family.file.components.items():
        source = entry.sources.get(variant)
        if isinstance(source, schema.PipKind) and source.project is not None:
            place = family.document.place_of(("components", component_id, "sources", variant, "project"))
            version = read_project(family.folder / source.project).version
            yield component_id, Promised(schema.Promise(version=version), place)


def canonical_id(family: Family, name: str, location: Location | None = None) -> str:
    """Return the id of a component that may be spelled otherwise; raises ManifestError for an unknown one."""
    if name in family.file.components:
        return name
    for component_id, entry in family.file.components.items():
        if name in entry.aliases:
            return component_id
    known = (*family.file.components, *(alias for entry in family.file.components.values() for alias in entry.aliases))
    raise ManifestError(
        f"unknown component {name!r}", hint=did_you_mean(name, known, noun="components"), location=location
    )


def _promises_at(
    family: Family, entry: ReleaseEntry, path: tuple[str, ...], components: Mapping[str, str | schema.Promise]
) -> Iterator[tuple[str, Promised]]:
    seen: dict[str, str] = {}
    for name, promise in components.items():
        place = entry.document.key_places[*path, name]
        component_id = canonical_id(family, name, place)
        if component_id in seen:
            raise ManifestError(
                f"{name!r} and {seen[component_id]!r} are the same component",
                hint="keep one of the two lines",
                location=place,
            )
        seen[component_id] = name
        whole = schema.Promise(version=promise) if isinstance(promise, str) else promise
        yield component_id, Promised(whole, place)


def with_overrides(family: Family, promised: dict[str, Promised], overridden: Mapping[str, str]) -> dict[str, Promised]:
    """Return the promises with versions to try in place of the manifest's; raises UsageError for an absent one."""
    changed = dict(promised)
    for name, version in overridden.items():
        component_id = canonical_id(family, name)
        if component_id not in promised:
            raise UsageError(
                f"--set {name}: the release has no such component",
                hint=did_you_mean(name, promised, noun="components"),
            )
        old = promised[component_id]
        changed[component_id] = Promised(old.promise.model_copy(update={"version": version}), old.location)
    return changed
