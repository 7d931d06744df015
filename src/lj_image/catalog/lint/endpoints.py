"""Where a family is published: kinds of registries that there are, and tags that can move there without harm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from lj_image.catalog.endpoint_schema import MovingTags
from lj_image.catalog.endpoints import VPC, moving_tags_of, places_of_tags, same_store, template_values
from lj_image.catalog.lint.finding import Code, Finding, findings_of
from lj_image.catalog.lint.subject import FamilySubject, ReleaseSubject, is_unavailable
from lj_image.catalog.profiles import capabilities_of
from lj_image.catalog.versions import fill
from lj_image.documents.nodes import KeyPath
from lj_image.errors import Location, ManifestError


def regions(subject: FamilySubject) -> Iterator[Finding]:
    """Find regions that stand in the list twice, and one that is called as the public place is."""
    names = subject.family.file.endpoints.vpc.region_names
    for position, name in enumerate(names):
        if name in names[:position] or name == "public":
            first = "the public place" if name == "public" else "an earlier line"
            place = subject.family.document.place_of((*VPC, "regions", position))
            yield Finding(Code.REGION_TWICE, f"the region {name!r} is {first}, too", "delete it, or rename it", place)


def profiles(subject: FamilySubject) -> Iterator[Finding]:
    """Find unknown profiles, named by places or by profiles, and profiles that nobody could name."""
    family, entry = subject.family, subject.family.file.endpoints
    named: list[tuple[str | None, KeyPath]] = [
        (entry.public.profile, ("endpoints", "public", "profile")),
        (entry.vpc.profile, (*VPC, "profile")),
        *((region.profile, (*VPC, "regions", place, "profile")) for place, region in enumerate(entry.vpc.entries)),
        *((name, ("endpoints", "profiles", name)) for name in entry.profiles),
    ]
    for name, path in named:
        if name is not None:
            try:
                capabilities_of(family, name, "", path)
            except ManifestError as error:
                yield from findings_of(error, Code.UNKNOWN_PROFILE)


def stores(subject: FamilySubject) -> Iterator[Finding]:
    """Find regions that are the same store as no other place."""
    for position, region in enumerate(subject.family.file.endpoints.vpc.entries):
        try:
            same_store(subject.family, region, (*VPC, "regions", position, "same_store_as"))
        except ManifestError as error:
            yield from findings_of(error, Code.UNKNOWN_PLACE)


def moving_where_none_moves(subject: FamilySubject) -> Iterator[Finding]:
    """Find tags that are to move at a registry whose profile says that tags never do."""
    family, entry = subject.family, subject.family.file.endpoints
    kinds = {"public": (entry.public.profile, entry.public.host)}
    kinds |= {item.name: (item.profile or entry.vpc.profile, entry.vpc.host_of(item)) for item in entry.vpc.entries}
    for name, entries, path in places_of_tags(entry):
        with suppress(ManifestError):  # an unknown profile is told already
            taken = capabilities_of(family, *kinds[name], path)
            if entries and taken.immutable_tags:
                yield Finding(
                    Code.MOVING_TAG_CANNOT_MOVE,
                    f"{name} has tags that move, but its profile {taken.profile} says that no tag can be set again",
                    "write `moving_tags: []` for this place, or say `immutable_tags: false` in a profile of yours",
                    family.document.place_of(path),
                )


def moving_tags(subject: ReleaseSubject) -> Iterator[Finding]:
    """Find moving tags that are the release's own in some variant, and those that two variants would move."""
    variants = [name for name in subject.family.file.variants if not is_unavailable(subject.entry, name)]
    own = {tag: variant for variant in variants if (tag := _own_tag(subject, variant)) is not None}
    told: set[KeyPath] = set()
    for _, entries, path in places_of_tags(subject.family.file.endpoints):
        if path not in told:  # several regions share the list of `vpc`
            told.add(path)
            moving = {variant: _moving(subject, entries, path, variant) for variant in variants}
            for position, entry in enumerate(entries):
                template = entry if isinstance(entry, str) else entry.tag
                place = subject.family.document.place_of((*path, position))
                yield from _judged(template, _of_template(moving, position), own, place)


def _judged(template: str, moving: Mapping[str, str], own: Mapping[str, str], place: Location) -> Iterator[Finding]:
    """Judge what a template gives in each variant; told of the template, so that releases do not repeat it."""
    if owner := next((own[tag] for tag in moving.values() if tag in own), None):
        yield Finding(
            Code.MOVING_TAG_IS_OWN,
            f"{template} is to move, but it gives the tag of the variant {owner!r}, which never moves",
            "write a tag that says less, such as `{release}` or `latest`",
            place,
        )
        return
    for tag in dict.fromkeys(moving.values()):
        if len(sharing := [variant for variant, other in moving.items() if other == tag]) > 1:
            yield Finding(
                Code.MOVING_TAG_SHARED,
                f"{template} would be moved by the variants {' and '.join(sharing)}, each to its own image",
                "put `{variant}` into it, or say whose it is: `{tag: …, variants: […]}`",
                place,
            )


def _of_template(moving: Mapping[str, Mapping[str, int]], position: int) -> dict[str, str]:
    """Return what one template gives: variant -> tag."""
    return {variant: tag for variant, tags in moving.items() for tag, where in tags.items() if where == position}


def _moving(subject: ReleaseSubject, entries: MovingTags, path: KeyPath, variant: str) -> dict[str, int]:
    """Return each tag of a list and the place of its template; raises ManifestError for one that cannot be filled."""
    values = template_values(subject.entry.file, variant, subject.promised[variant])
    return dict(moving_tags_of(subject.family, entries, path, variant, values))


def _own_tag(subject: ReleaseSubject, variant: str) -> str | None:
    values = template_values(subject.entry.file, variant, subject.promised[variant])
    try:
        return fill(subject.family.file.variants[variant].tag, values)
    except ManifestError:  # told where it is resolved
        return None
