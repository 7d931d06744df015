"""The catalog of the current folder: whether there is one, and whether it is clean."""

from __future__ import annotations

from collections.abc import Iterator

from lj_image.catalog.catalog import Catalog
from lj_image.doctor.finding import Finding, ok, problem

SHOWN = 3
"""Findings of lint that are named; `lj-image lint` has them all."""


def catalog(found: Catalog) -> Iterator[Finding]:
    """Lint a catalog; raises LjImageError when it cannot even be read."""
    from lj_image.catalog.lint import lint

    names = found.family_names
    faults = lint(found)
    place = f"{found.root}: {', '.join(names)}"
    if not faults:
        yield ok("catalog", f"{place}; clean")
        return
    for fault in faults[:SHOWN]:
        where = f" (at {fault.location})" if fault.location else ""
        yield problem("catalog", f"{fault.message}{where}", fault.hint)
    if len(faults) > SHOWN:
        yield problem("catalog", f"… and {len(faults) - SHOWN} more findings", "run: lj-image lint")
