"""Where images come from and go to: whether the registries answer from here, and where their logins are kept."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from lj_image.catalog.catalog import Catalog
from lj_image.config import Config, RegistryConfig
from lj_image.doctor.finding import Finding, ok, problem, warning
from lj_image.errors import UsageError
from lj_image.lock.http import Address
from lj_image.lock.reach import Reach, reach
from lj_image.registry.access import Access
from lj_image.registry.credentials import Login, login_for
from lj_image.suggest import did_you_mean

CHECK: Final = "registry"
ALL_REGIONS: Final = "all"
Purpose = Literal["public", "vpc", "base"]


@dataclass(frozen=True, slots=True)
class Place:
    """A registry host that a command would use."""

    host: str
    """Where the bytes really go to or come from, such as `localhost:5000`."""
    purpose: Purpose
    stands_for: str | None = None
    """The host that the config rewrites."""
    said: RegistryConfig = field(default_factory=RegistryConfig)
    """How the config says it is reached."""


def places(catalog: Catalog, config: Config, regions: Sequence[str]) -> tuple[Place, ...]:
    """Return every registry of a catalog, each host once: bases', public ones, and those of the named regions.

    Raises UsageError for a region that no family has.
    """
    found: dict[str, Place] = {}
    families = [catalog.family(name).file for name in catalog.family_names]
    known = dict.fromkeys(region for file in families for region in file.endpoints.vpc.region_names)
    _check(regions, tuple(known))
    for file in families:
        for variant in file.variants.values():
            if variant.base.reference is not None:
                _add(found, _base(variant.base.reference, config))
        _add(found, _endpoint(file.endpoints.public.host, None, "public", config))
        for entry in file.endpoints.vpc.entries:
            if entry.name in regions or ALL_REGIONS in regions:
                _add(found, _endpoint(file.endpoints.vpc.host_of(entry), entry.name, "vpc", config))
    return tuple(found.values())


def registry(place: Place, environ: Mapping[str, str] = os.environ) -> Iterator[Finding]:
    """Ask a registry whether it is one, and look for its login; raises PublishError for an unreadable docker config."""
    login = login_for(place.host) if place.said.username is None else Login("config")
    trusted = {"SSL_CERT_FILE": place.said.ca_bundle} if place.said.ca_bundle else {}
    base = Access(place.host, plain_http=place.said.plain_http).base
    answer = reach(base, Address(base), {**environ, **trusted})
    yield judged(place, answer, login)


def judged(place: Place, answer: Reach, login: Login) -> Finding:
    """Judge what was found of a registry."""
    name = f"{place.host}{f' (stands for {place.stands_for})' if place.stands_for else ''}"
    if not login.program_found:
        hint = f"install {login.program}, or take it out of {login.kind} in the docker config"
        # Every pull and push asks the store; a helper of one host concerns that host alone.
        bad = problem if login.kind == "credsStore" else warning
        return bad(CHECK, f"{name}: {login.program} is not installed", hint)
    if answer.status is None:
        return _unreached(place, answer, f"{name}: ", _words(login))
    if answer.status == 401 and login.kind == "none" and place.purpose != "base":
        return warning(CHECK, f"{name}: wants a login, and there is none", f"run: docker login {place.host}")
    if answer.status in (200, 401, 403):
        return ok(CHECK, f"{name}: answers; {_words(login)}")
    return warning(CHECK, f"{name}: answers {answer.status}", "is it a registry? its owner may know more")


def _words(login: Login) -> str:
    if login.kind == "none":
        return "no login"
    return f"login in {login.kind}{f' ({login.program})' if login.program else ''}"


def _unreached(place: Place, answer: Reach, name: str, login: str) -> Finding:
    if place.purpose == "vpc":
        return ok(CHECK, f"{name}not reachable from here, as a VPC's address is from outside; {login}")
    why = "its name leads nowhere" if not answer.has_name else answer.failure
    if place.purpose == "base":
        hint = f"bases are pulled from it; from elsewhere: `mirrors: {{{place.host}: …}}` in the config"
    else:
        hint = "`push --public` goes there, through the engine; to elsewhere: `endpoints.rewrite` in the config"
    return warning(CHECK, f"{name}not reached from here: {why}; {login}", hint)


def _check(regions: Sequence[str], known: Sequence[str]) -> None:
    for region in regions:
        if region not in (*known, ALL_REGIONS):
            hint = did_you_mean(region, (*known, ALL_REGIONS), noun="regions")
            raise UsageError(f"unknown region {region!r}", hint=hint)


def _add(found: dict[str, Place], place: Place) -> None:
    found.setdefault(place.host, place)


def _base(reference: str, config: Config) -> Place:
    host, mirrored = reference.partition("/")[0], config.mirrored(reference).partition("/")[0]
    return Place(mirrored, "base", host if mirrored != host else None, config.registry(mirrored))


def _endpoint(host: str, region: str | None, purpose: Purpose, config: Config) -> Place:
    place = config.values.endpoints.rewritten(host, region).partition("/")[0]
    if place == host:
        return Place(host, purpose, said=config.registry(host))
    return Place(place, "public", host, config.registry(place))  # whoever rewrites it knows a host that can be reached
