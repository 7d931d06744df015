"""What there is: one row for each release of each image."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lj_image.catalog.catalog import Catalog, Family


@dataclass(frozen=True, slots=True)
class Row:
    """One release of one image."""

    image: str
    release: str
    base: str
    """The values of its base table, such as `ngc 25.01`."""
    variants: dict[str, str | None]
    """Variant -> why it cannot be had, or None."""

    def shown_variants(self) -> tuple[str, ...]:
        """Return the variants for people: one that cannot be had stands in brackets."""
        return tuple(f"({name})" if why else name for name, why in self.variants.items())

    def to_json(self) -> dict[str, Any]:
        """Return the row for machines."""
        return asdict(self)


def listing(catalog: Catalog) -> tuple[Row, ...]:
    """Return a row for each release, in the order of their names."""
    families = [catalog.family(name) for name in catalog.family_names]
    return tuple(_row(family, name) for family in families for name in family.release_names)


def _row(family: Family, name: str) -> Row:
    file = family.release(name).file
    unavailable = {variant: own.unavailable for variant, own in file.variants.items()}
    return Row(
        image=family.name,
        release=name,
        base=", ".join(f"{key} {value}" for key, value in file.base.items()),
        variants={variant: unavailable.get(variant) for variant in family.file.variants},
    )
