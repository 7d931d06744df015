"""The endpoints of `image.yaml` become places with their terms: profiles by name or by host, tags that move."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final

from lj_image.catalog.catalog import Family
from lj_image.catalog.endpoint import PUBLIC, Endpoints, Terms
from lj_image.catalog.endpoint_schema import EndpointsEntry, MovingTags, RegionEntry
from lj_image.catalog.profiles import capabilities_of
from lj_image.catalog.promises import Promised, promises
from lj_image.catalog.schema import ReleaseFile
from lj_image.catalog.versions import fill
from lj_image.documents.nodes import KeyPath
from lj_image.errors import Location, ManifestError
from lj_image.suggest import did_you_mean

_TAG: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
"""Distribution spec, "Pulling manifests": what a tag may be."""
VPC: Final[KeyPath] = ("endpoints", "vpc")
TagsOf = Callable[[MovingTags, KeyPath], tuple[str, ...]]


def template_values(file: ReleaseFile, variant: str, promised: Mapping[str, Promised]) -> dict[str, str]:
    """Return what the template of a tag may name: the release, its date, the variant, and each component's version."""
    named = {"release": file.release, "date": (file.date or "").replace("-", ""), "variant": variant}
    return named | {name: item.promise.version for name, item in promised.items()}


def endpoints_of(family: Family, release: str, variant: str, values: Mapping[str, str]) -> Endpoints:
    """Return all places of a family for a release in a variant, whose names and versions are in `values`.

    Raises ManifestError for a profile that there is not, a template that cannot be filled, and a place that is the same
    store as none.
    """
    entry = family.file.endpoints
    repository = "/".join(part for part in (family.file.namespace, family.name) if part)
    newer = tuple(_newer(family, release, variant)) if _has_moving_tags(entry) else ()

    def tags_of(entries: MovingTags, path: KeyPath) -> tuple[str, ...]:
        taken = {tag for others in newer for tag in _rendered(family, entries, path, variant, others)}
        own = dict(moving_tags_of(family, entries, path, variant, values))
        return tuple(tag for tag in own if tag not in taken)

    terms = dict(_terms(family, tags_of))
    return Endpoints(entry.public.host, entry.vpc.host, entry.vpc.region_names, repository, terms)


def _has_moving_tags(entry: EndpointsEntry) -> bool:
    return any(entries for _, entries, _ in places_of_tags(entry))


def _newer(family: Family, release: str, variant: str) -> Iterator[dict[str, str]]:
    """Yield the values of each later release that can be had in a variant, and that can be read.

    A moving tag is the newest release's: an older one that is pushed again, to a new region, does not take it back.
    """
    for name in family.release_names[family.release_names.index(release) + 1 :]:
        with suppress(ManifestError):  # said of that release itself
            chain = family.chain(name)
            own = chain[-1].file.variants.get(variant)
            if own is None or own.unavailable is None:
                yield template_values(chain[-1].file, variant, promises(family, chain, variant))


def _rendered(
    family: Family, entries: MovingTags, path: KeyPath, variant: str, values: Mapping[str, str]
) -> Iterator[str]:
    for entry in entries:
        with suppress(ManifestError):  # a component that the later release does not have is said of that release
            yield from dict(moving_tags_of(family, [entry], path, variant, values))


def moving_tags_of(
    family: Family, entries: MovingTags, path: KeyPath, variant: str, values: Mapping[str, str]
) -> Iterator[tuple[str, int]]:
    """Yield each tag that moves with a variant, and its place in the list.

    Raises ManifestError for a tag that no registry takes, and for an unknown variant.
    """
    for position, entry in enumerate(entries):
        place = family.document.place_of((*path, position))
        template, variants = (entry, None) if isinstance(entry, str) else (entry.tag, entry.variants)
        _require_variants(family, variants or (), (*path, position, "variants"))
        if variants is None or variant in variants:
            yield _valid(fill(template, values, location=place), place), position


def places_of_tags(entry: EndpointsEntry) -> Iterator[tuple[str, MovingTags, KeyPath]]:
    """Yield each place's name with the tags that move there, and where these stand."""
    yield PUBLIC, entry.public.moving_tags, ("endpoints", "public", "moving_tags")
    for position, region in enumerate(entry.vpc.entries):
        yield region.name, *_tags_of_region(entry, region, position)


def _tags_of_region(entry: EndpointsEntry, region: RegionEntry, position: int) -> tuple[MovingTags, KeyPath]:
    if region.moving_tags is not None:
        return region.moving_tags, (*VPC, "regions", position, "moving_tags")
    return entry.vpc.moving_tags, (*VPC, "moving_tags")


def _terms(family: Family, tags_of: TagsOf) -> Iterator[tuple[str, Terms]]:
    entry = family.file.endpoints
    public = capabilities_of(family, entry.public.profile, entry.public.host, ("endpoints", "public", "profile"))
    tags = {name: tags_of(entries, path) for name, entries, path in places_of_tags(entry)}
    yield PUBLIC, Terms(public, tags[PUBLIC])
    for position, region in enumerate(entry.vpc.entries):
        own = (*VPC, "regions", position)
        path = (*own, "profile") if region.profile is not None else (*VPC, "profile")
        taken = capabilities_of(family, region.profile or entry.vpc.profile, entry.vpc.host_of(region), path)
        store = same_store(family, region, (*own, "same_store_as"))
        yield region.name, Terms(taken, tags[region.name], region.host, store)


def same_store(family: Family, region: RegionEntry, path: KeyPath) -> str | None:
    """Return the place whose store a region shares; raises ManifestError for none, itself, or one that shares, too."""
    named = region.same_store_as
    if named is None:
        return None
    others = {entry.name: entry for entry in family.file.endpoints.vpc.entries if entry.name != region.name}
    location = family.document.place_of(path)
    if named != PUBLIC and named not in others:
        raise ManifestError(
            f"{region.name} is the same store as {named!r}, which is no other place of {family.name}",
            hint=did_you_mean(named, (PUBLIC, *others), noun="places"),
            location=location,
        )
    if named in others and (further := others[named].same_store_as) is not None:
        raise ManifestError(
            f"{region.name} is the same store as {named}, which is said to be that of {further}",
            hint=f"name {further} in both places" if further != region.name else "say it of one of the two",
            location=location,
        )
    return named


def _require_variants(family: Family, variants: Iterable[str], path: KeyPath) -> None:
    for position, name in enumerate(variants):
        if name not in family.file.variants:
            raise ManifestError(
                f"moving_tags names {name!r}, which is no variant of {family.name}",
                hint=did_you_mean(name, family.file.variants, noun="variants"),
                location=family.document.place_of((*path, position)),
            )


def _valid(tag: str, place: Location) -> str:
    if _TAG.fullmatch(tag) is None:
        raise ManifestError(
            f"{tag!r} cannot be a tag",
            hint="a tag has letters, digits, `_`, `.` and `-`, starts with none of the last two, and ends at 128",
            location=place,
        )
    return tag
