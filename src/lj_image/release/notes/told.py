"""What the manifests say for a note: the release on each architecture, the one before it, and the family's texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.release import NotesFacts, Release
from lj_image.catalog.topics import Topics
from lj_image.config import Config
from lj_image.snapshot import Snapshots, encode


@dataclass(frozen=True, slots=True)
class Before:
    """The release that the feature list is a difference to."""

    name: str
    promised: Mapping[str, str]
    """Component id -> version, in the same variant."""
    base: Mapping[str, str]
    """Its table that names the base."""


@dataclass(frozen=True, slots=True)
class Told:
    """All that is written down about one release in one variant."""

    releases: tuple[Release, ...]
    """One for each architecture that the variant has, in the release's order."""
    not_made_for: tuple[str, ...]
    order: tuple[str, ...]
    """Ids of the family's components, in layer order."""
    titles: Mapping[str, str]
    base: Mapping[str, str]
    """The table that names the base: ngc -> 25.01."""
    before: Before | None
    notes: NotesFacts
    topics: Topics


def told(catalog: Catalog, config: Config, release: Release, snapshots: Snapshots | None = None) -> Told:
    """Gather what the manifests say, or take what they said while none of them has changed.

    Raises ManifestError for a family that has no notes, or a faulty text.
    """
    if snapshots is None:
        return _read(catalog, config, release)
    from lj_image.catalog.resolved import made_from

    asked = ("notes", encode(release))
    return snapshots.once(Told, lambda: made_from(catalog.root, config, asked), lambda: _read(catalog, config, release))


def _read(catalog: Catalog, config: Config, release: Release) -> Told:
    from lj_image.release.notes.reading import read_told  # late: it validates, which a snapshot spares

    return read_told(catalog, config, release)
