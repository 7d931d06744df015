"""What there is: one row for each release of each image.

Read from the parsed files without validating them, so that listing is instant; `lint` is what judges.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lj_image.catalog.catalog import Catalog, release_names, shown
from lj_image.documents.nodes import read_document


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
    return tuple(
        _row(catalog, name, release) for name in catalog.family_names for release in release_names(catalog.root / name)
    )


def _row(catalog: Catalog, image: str, release: str) -> Row:
    path = catalog.root / image / "releases" / f"{release}.yaml"
    values = read_document(path, shown(path)).data
    own = _mapping(values.get("variants"))
    return Row(
        image=image,
        release=release,
        base=", ".join(f"{key} {value}" for key, value in _mapping(values.get("base")).items()),
        variants={
            variant: _english(_mapping(own.get(variant)).get("unavailable"))
            for variant in _mapping(catalog.document(image).data.get("variants"))
        },
    )


def _english(text: Any) -> str | None:
    found = text.get("en") if isinstance(text, dict) else text
    return " ".join(str(found).split()) if found else None


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
