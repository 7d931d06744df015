"""Release + regions -> the references to publish under, and where their bytes go on this machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from lj_image.catalog.release import Endpoint, Release
from lj_image.config import Config
from lj_image.errors import UsageError
from lj_image.suggest import did_you_mean

ALL_REGIONS: Final = "all"
"""What to write instead of every region's name."""


@dataclass(frozen=True, slots=True)
class Target:
    """One reference to publish under."""

    endpoint: Endpoint
    reference: str
    """The real name, `host/repository:tag`, which records, notes and people use."""
    sent_to: str
    """Where the bytes go: the same, unless the config rewrites the endpoint."""
    store: str = ""
    """What lies behind: the host that the bytes go to, or that of the place which is the same store; empty: unknown."""

    @property
    def rewritten(self) -> bool:
        """Say whether the config sends the bytes elsewhere."""
        return self.sent_to != self.reference


def targets(release: Release, tag: str, regions: Sequence[str], public: bool, config: Config) -> tuple[Target, ...]:
    """Return the targets asked for, the public one first, none twice; raises UsageError for an unknown region."""
    known = release.endpoints.regions
    if not (public or regions):
        raise UsageError(
            "nothing says where to publish",
            hint=f"write --public, --region REGION (again for each further one) or --region {ALL_REGIONS}\n"
            f"regions of {release.image}: {', '.join(known)}",
        )
    endpoints = (
        *((release.endpoints.public(),) if public else ()),
        *map(release.endpoints.vpc, _named(regions, known)),
    )
    return tuple(_target(endpoint, release, tag, config) for endpoint in endpoints)


def all_references(release: Release, tag: str) -> tuple[str, ...]:
    """Return every reference that a release can have: the public one, then one per region."""
    endpoints = (release.endpoints.public(), *map(release.endpoints.vpc, release.endpoints.regions))
    return tuple(_reference(endpoint.host, endpoint, tag) for endpoint in endpoints)


def _named(regions: Iterable[str], known: Sequence[str]) -> tuple[str, ...]:
    """Return known regions, in the order asked for and each once, with `all` spelt out."""
    found: dict[str, None] = {}
    for region in regions:
        if region != ALL_REGIONS and region not in known:
            raise UsageError(
                f"unknown region {region!r}", hint=did_you_mean(region, (*known, ALL_REGIONS), noun="regions")
            )
        found |= dict.fromkeys(known if region == ALL_REGIONS else (region,))
    return tuple(found)


def _target(endpoint: Endpoint, release: Release, tag: str, config: Config) -> Target:
    place = config.values.endpoints.rewritten(endpoint.host, endpoint.region)
    named = next((item for item in release.endpoints.all() if item.name == endpoint.same_store_as), endpoint)
    store = config.values.endpoints.rewritten(named.host, named.region).partition("/")[0]
    return Target(endpoint, _reference(endpoint.host, endpoint, tag), _reference(place, endpoint, tag), store)


def _reference(place: str, endpoint: Endpoint, tag: str) -> str:
    return f"{place}/{endpoint.repository}:{tag}"
