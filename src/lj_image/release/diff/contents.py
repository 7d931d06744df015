"""What one side of a comparison holds, whatever it was read from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from lj_image.catalog.text import Text

Kind = Literal["release", "image", "archive"]
Measure = Literal["locked", "compressed", "unpacked"]
"""What a layer's size counts: the files that it is made from, its blob in a registry, or its tar in an engine."""


@dataclass(frozen=True, slots=True)
class Part:
    """A component as it is inside."""

    title: str
    version: str
    """As installed, which a stand-in has of its own."""
    downgrade: Text | None = None
    """Why it is lower than before, as its release says."""
    of_base: bool = False


@dataclass(frozen=True, slots=True)
class Distribution:
    """A Python distribution as it is inside."""

    name: str
    """Normalised (PEP 503)."""
    version: str
    component: str | None = None
    """The id of the component that brings it, where a lock says so."""
    artifact: str | None = None
    """The sha256 of its locked file."""
    pinned: bool = True
    """False for one that is only seen in a base or an image, whoever put it there."""


@dataclass(frozen=True, slots=True)
class LayerFact:
    """A layer; the same identity means the same content."""

    identity: str
    """`sha256:…`: a diff id, or for a planned layer the digest of what it is made from."""
    title: str
    size_bytes: int | None
    """None where only an engine can tell."""


@dataclass(frozen=True, slots=True)
class FileFact:
    """A file or link of an image."""

    size_bytes: int
    digest: str
    """Of its content; `→ target` for a link."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Files by path, without a leading slash, and what could not be listed."""

    files: Mapping[str, FileFact]
    notes: tuple[str, ...] = ()


class Details(Protocol):
    """What is read only when something asks for it."""

    def licences(self, names: Iterable[str]) -> Mapping[str, str]:
        """Return distribution -> licence, of those that can be known here."""

    def unlisted(self, names: Iterable[str]) -> frozenset[str]:
        """Return those of the named distributions whose files cannot be known here."""

    def files(self, names: Iterable[str]) -> Listing:
        """Return the files; a release lists those of the named distributions, of its trees and of the constraints."""

    def dockerfile(self) -> str | None:
        """Return the rendered Dockerfile, None where there is none."""


@dataclass(frozen=True, slots=True)
class Contents:
    """One side of a comparison."""

    name: str
    """Such as `training-nv-pytorch 25.02, variant open`."""
    short: str
    """Such as 25.02: what stands over its column."""
    kind: Kind
    platform: str
    """Such as linux/amd64."""
    details: Details
    image: str | None = None
    """The family, where it is known."""
    variant: str | None = None
    components: Mapping[str, Part] | None = None
    """By id, in layer order; None where nothing says which they are."""
    distributions: Mapping[str, Distribution] | None = None
    """By normalised name; None without a lock."""
    complete: bool = True
    """False while the base's own distributions are known in part only."""
    base: str | None = None
    """The image below, by name and digest, where the layers above it alone are listed."""
    layers: tuple[LayerFact, ...] | None = None
    """In order; None without a lock."""
    measure: Measure = "locked"
    builder: str | None = None
    """The builder of the image that the record of this very plan tells of."""
    architectures: tuple[str, ...] = ()
    """Those that a release is made for."""
    fetch: str | None = None
    """The command that brings files which are not here."""
    notes: tuple[str, ...] = field(default=())
    """What is not known of it, and why."""
