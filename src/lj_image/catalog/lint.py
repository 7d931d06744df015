"""All that can be said of a catalog without a network: every file, every release, every variant."""

from __future__ import annotations

from collections.abc import Iterator

from lj_image.catalog.catalog import Catalog, Family
from lj_image.catalog.release import Platform
from lj_image.catalog.resolve import resolve_variant
from lj_image.catalog.schema import ReleaseFile
from lj_image.errors import Location, ManifestError


def lint(catalog: Catalog) -> tuple[ManifestError, ...]:
    """Return every finding once, in the order of files and lines."""
    found: dict[tuple[str, ...], ManifestError] = {}
    for name in catalog.family_names:
        try:
            findings = list(_family_findings(catalog, catalog.family(name)))
        except ManifestError as error:
            findings = [error]
        for finding in findings:
            found.setdefault(finding.lines(), finding)
    return tuple(sorted(found.values(), key=_place))


def _place(finding: ManifestError) -> tuple[str, int]:
    location = finding.location or Location("")
    return location.file, location.line or 0


def _family_findings(catalog: Catalog, family: Family) -> Iterator[ManifestError]:
    yield from _spelling_findings(family)
    yield from _variant_name_findings(family)
    for name in family.release_names:
        try:
            family.chain(name)
        except ManifestError as error:
            yield error
            continue
        yield from _release_findings(catalog, family, name)


def _spelling_findings(family: Family) -> Iterator[ManifestError]:
    """Find spellings that mean two components."""
    owner: dict[str, str] = {name: name for name in family.file.components}
    for component_id, entry in family.file.components.items():
        for position, alias in enumerate(entry.aliases):
            other = owner.setdefault(alias, component_id)
            if other != component_id:
                yield ManifestError(
                    f"{alias!r} means {other} and {component_id}",
                    hint="take it away from one of the two",
                    location=family.document.place_of(("components", component_id, "aliases", position)),
                )


def _variant_name_findings(family: Family) -> Iterator[ManifestError]:
    for component_id, entry in family.file.components.items():
        for variant in entry.sources:
            if variant not in family.file.variants:
                yield ManifestError(
                    f"components.{component_id} has a source for {variant!r}, which is no variant",
                    hint=f"variants: {', '.join(family.file.variants)}",
                    location=family.document.key_places["components", component_id, "sources", variant],
                )


def _release_findings(catalog: Catalog, family: Family, name: str) -> Iterator[ManifestError]:
    chain = family.chain(name)
    own = chain[-1]
    for variant in own.file.variants:
        if variant not in family.file.variants:
            yield ManifestError(
                f"{variant!r} is no variant of {family.name}",
                hint=f"variants: {', '.join(family.file.variants)}",
                location=own.document.key_places["variants", variant],
            )
    for variant in family.file.variants:
        if _is_unavailable(own.file, variant):
            continue
        try:
            resolve_variant(catalog, family, chain, variant, "lint", Platform(), {})
        except ManifestError as error:
            yield error


def _is_unavailable(file: ReleaseFile, variant: str) -> bool:
    own = file.variants.get(variant)
    return own is not None and own.unavailable is not None
