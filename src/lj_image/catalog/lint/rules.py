"""The rules, in the order in which they speak: where two find a fault in one place, the first one names it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from lj_image.catalog.lint import (
    addresses,
    downgrades,
    drivers,
    endpoints,
    order,
    resolution,
    structure,
    tables,
    texts,
    topics,
)
from lj_image.catalog.lint.finding import Finding
from lj_image.catalog.lint.subject import FamilySubject, FileSubject, ReleaseSubject

FAMILY_RULES: Final[tuple[Callable[[FamilySubject], Iterable[Finding]], ...]] = (
    structure.spellings,
    structure.family_variants,
    addresses.public_host,
    endpoints.regions,
    endpoints.profiles,
    endpoints.stores,
    endpoints.moving_where_none_moves,
    addresses.family_addresses,
    texts.family_translations,
    topics.topics,
)
"""What `image.yaml` and the files beside it say."""

FILE_RULES: Final[tuple[Callable[[FileSubject], Iterable[Finding]], ...]] = (
    order.order,
    structure.release_variants,
    structure.component_names,
    drivers.driver_lists,
    addresses.release_addresses,
    texts.release_translations,
)
"""What a release file says by itself, even where its inheritance is broken."""

RELEASE_RULES: Final[tuple[Callable[[ReleaseSubject], Iterable[Finding]], ...]] = (
    structure.unlisted,
    drivers.driver_against_required,
    tables.texts_against_table,
    tables.highlights_of_nothing,
    downgrades.downgrades,
    downgrades.reasons_for_nothing,
    endpoints.moving_tags,
    resolution.sources,
    resolution.resolutions,
)
"""What a release says with all that it inherits, and against the release before."""
