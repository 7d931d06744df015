"""The frozen values of a lock: which files a release × variant is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ArtifactKind = Literal["wheel", "sdist", "archive"]

SHARED = "shared"
"""The owner of a distribution that several components require."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """One file, known by its digest."""

    file: str
    size_bytes: int
    sha256: str
    """64 hexadecimal digits."""
    kind: ArtifactKind


@dataclass(frozen=True, slots=True)
class LockedDistribution:
    """A distribution at its exact version."""

    name: str
    """Normalised (PEP 503)."""
    version: str
    artifact: Artifact
    index: str
    """The name of its index, never an address."""
    component: str
    """The id of the component that brings it, or `shared`."""
    required_by: tuple[str, ...] = ()
    """Names of the distributions that require it; empty when only a component asks for it."""


@dataclass(frozen=True, slots=True)
class LockedArchive:
    """An archive of a component of kind `archive`."""

    component: str
    version: str
    artifact: Artifact
    location: str
    """The name of its address in the config."""


@dataclass(frozen=True, slots=True)
class Lock:
    """All files of one release in one variant, and what they were resolved from."""

    key: str
    """Such as 25.02-open."""
    inputs: tuple[str, ...]
    """What was asked, a line each (`require ray==2.42.1`): the lock is stale when the release asks otherwise."""
    distributions: tuple[LockedDistribution, ...]
    """Sorted by name."""
    archives: tuple[LockedArchive, ...]
    digest: str
    """`sha256:…` of the file's text."""
    image_in_commands: str | None = None
    """As in Release: named in the lock's own command where its release alone means several."""

    def artifacts(self) -> tuple[Artifact, ...]:
        """Return every file to fetch."""
        return (*(item.artifact for item in self.distributions), *(item.artifact for item in self.archives))

    def distribution(self, name: str) -> LockedDistribution | None:
        """Return a distribution by its normalised name."""
        return next((item for item in self.distributions if item.name == name), None)
