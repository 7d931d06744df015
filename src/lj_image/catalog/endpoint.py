"""Where a family is published, and on what terms: what each registry takes, which tags move there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from lj_image.oci.capabilities import Capabilities

UNKNOWN: Final = Capabilities()
"""What is assumed of a registry of which nothing is known."""
Network = Literal["public", "vpc"]
PUBLIC: Final = "public"
"""The name of the one place for the whole world, where regions have theirs."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What is particular to one place."""

    capabilities: Capabilities = UNKNOWN
    moving_tags: tuple[str, ...] = ()
    """Tags that follow the release, rendered for it: `latest`, `25.02`."""
    host: str | None = None
    """In place of the one that the pattern gives."""
    same_store_as: str | None = None
    """Another place, `public` or a region, that is the same store by another name."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A place to publish to, before any rewriting by the config."""

    host: str
    network: Network
    region: str | None
    repository: str
    """Namespace and image name."""
    capabilities: Capabilities = UNKNOWN
    """What is known of its kind of registry."""
    moving_tags: tuple[str, ...] = ()
    """Tags that follow the release, rendered for it: `latest`, `25.02`."""
    same_store_as: str | None = None
    """The `name` of another place that is the same store: what is brought there is here, too."""

    @property
    def name(self) -> str:
        """What people call it, unique in its family: the region, or `public`."""
        return self.region or PUBLIC


@dataclass(frozen=True, slots=True)
class Endpoints:
    """All places of a family."""

    public_host: str
    vpc_host: str
    """With `{region}` in it."""
    regions: tuple[str, ...]
    repository: str
    terms: Mapping[str, Terms] = field(default_factory=dict)
    """By the name of a place; one without has nothing particular."""

    def public(self) -> Endpoint:
        """Return the one public place; it never changes with a region."""
        return self._endpoint(self.public_host, "public", None)

    def vpc(self, region: str) -> Endpoint:
        """Return the place inside one region."""
        return self._endpoint(self.vpc_host.replace("{region}", region), "vpc", region)

    def all(self) -> Iterator[Endpoint]:
        """Yield every place, the public one first."""
        yield self.public()
        yield from map(self.vpc, self.regions)

    def _endpoint(self, host: str, network: Network, region: str | None) -> Endpoint:
        terms = self.terms.get(region or PUBLIC, Terms())
        return Endpoint(
            terms.host or host,
            network,
            region,
            self.repository,
            terms.capabilities,
            terms.moving_tags,
            terms.same_store_as,
        )
