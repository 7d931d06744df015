"""The manifests, read for a note."""

from __future__ import annotations

from lj_image.catalog.catalog import Catalog, Family, ReleaseEntry
from lj_image.catalog.promises import promises
from lj_image.catalog.release import Platform, Release
from lj_image.catalog.resolve import resolve
from lj_image.catalog.topics import topics_of
from lj_image.config import Config
from lj_image.errors import ManifestError
from lj_image.release.notes.told import Before, Told


def read_told(catalog: Catalog, config: Config, release: Release) -> Told:
    """Gather what the manifests say; raises ManifestError for a family that has no notes, or a faulty text."""
    family = catalog.family(release.image)
    if release.notes is None:
        raise ManifestError(
            f"{family.name} has no notes",
            hint="add to image.yaml: `notes: {product: …, scenario: …, languages: [en]}`",
            location=family.document.place_of(()),
        )
    chain = family.chain(release.name)
    made_for = _made_for(release)
    return Told(
        releases=tuple(_on(catalog, config, release, architecture) for architecture in made_for),
        not_made_for=tuple(item for item in release.architectures if item not in made_for),
        order=tuple(family.file.components),
        titles={name: entry.title for name, entry in family.file.components.items()},
        base=_base_table(chain),
        before=_before(family, chain, release.variant),
        notes=release.notes,
        topics=topics_of(family, release.name, release.variant),
    )


def _made_for(release: Release) -> tuple[str, ...]:
    """Return the release's architectures that its base has: one of ours is made for one alone."""
    recipe = release.base.recipe
    return tuple(item for item in release.architectures if recipe is None or item == recipe.architecture)


def _on(catalog: Catalog, config: Config, release: Release, architecture: str) -> Release:
    if architecture == release.platform.architecture:
        return release
    return resolve(
        catalog,
        config,
        f"{release.image}/{release.name}",
        variant=release.variant,
        platform=Platform(architecture=architecture),
        overridden=release.overridden,
        base_known=False,
    )


def _before(family: Family, chain: tuple[ReleaseEntry, ...], variant: str) -> Before | None:
    """Return the nearest release before that the variant has: nobody upgrades from one that cannot be had."""
    for end in range(len(chain) - 1, 0, -1):
        entry = chain[end - 1]
        own = entry.file.variants.get(variant)
        if own is None or own.unavailable is None:
            promised = promises(family, chain[:end], variant)
            versions = {name: item.promise.version for name, item in promised.items() if _has(family, name, variant)}
            return Before(entry.file.release, versions, _base_table(chain[:end]))
    return None


def _has(family: Family, component_id: str, variant: str) -> bool:
    return variant not in family.file.components[component_id].left_out


def _base_table(chain: tuple[ReleaseEntry, ...]) -> dict[str, str]:
    table: dict[str, str] = {}
    for entry in chain:
        table.update(entry.file.base)
    return table
