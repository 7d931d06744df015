"""Which releases and variants a command over the whole catalog means."""

from __future__ import annotations

from collections.abc import Iterator

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.manifest_facts import architectures_of
from lj_image.catalog.promises import promises
from lj_image.catalog.release import Platform, Release
from lj_image.catalog.resolve import resolve_variant
from lj_image.catalog.variants import why_not
from lj_image.config import Config


def buildable(
    catalog: Catalog, config: Config, release: str | None, variant: str | None, platform: Platform
) -> Iterator[Release]:
    """Yield each release × variant that can be had with this config for a platform.

    `release` or `variant` narrow it down. A release that is not made for the platform is passed over.
    """
    if release is not None:
        family, name = catalog.find(release)
        wanted = [(family, name)]
    else:
        families = [catalog.family(name) for name in catalog.family_names]
        wanted = [(family, name) for family in families for name in family.release_names]
    for family, name in wanted:
        chain = family.chain(name)
        if platform.architecture not in architectures_of(chain):
            continue
        promised = promises(family, chain)
        for item in family.file.variants:
            if variant not in (None, item):
                continue
            if why_not(catalog, family, chain[-1], promised, item, config, platform) is None:
                yield resolve_variant(catalog, family, chain, item, "configured", platform, {})
