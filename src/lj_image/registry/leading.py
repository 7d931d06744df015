"""Where a registry may lead a client: by a redirect, by the Location of an upload, by the realm of a login.

An answer can name any address, and what follows it is a request from inside our network. So nothing leads from the
internet into a private network or to this machine: addresses of those are refused, whoever is not allowed by name.
Names are not looked up, as what they lead to can change between the look and the request; a name has to show a
certificate for itself instead, since from https nothing leads to plain http. A VPC's registry, which leads to names of
its region, therefore needs no permission; one that leads to bare addresses gets it by `may_lead_to` in the config.
"""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import urljoin

import httpx

from lj_image.registry.access import Access, reach_of
from lj_image.registry.faults import RegistryError

_PRIVACY = {"public": 0, "private": 1, "loopback": 2}
"""Who is reached from fewer places leads to who is reached from more, not the other way round."""


def led_to(access: Access, url: str, named: str) -> str:
    """Return the address that `named` leads to from `url`; raises RegistryError for one that must not be followed.

    A registry behind a proxy may not know that it is spoken to by https: its own host is reached by https anyway.
    """
    try:
        other, own = parsed(urljoin(url, named)), parsed(access.base)
    except (httpx.InvalidURL, ValueError):  # not chained: the address may hold what lets its holder write
        raise RegistryError(f"{access.host} leads to what is no address", hint="ask the registry's owner") from None
    if other.scheme not in ("http", "https") or not other.host:
        raise RegistryError(f"{access.host} leads to an address that is not http", hint="ask the registry's owner")
    if own.scheme == "https" and other.scheme == "http":
        if other.host != own.host:
            raise RegistryError(f"{access.host} leads to {other.host} without https", hint="ask the registry's owner")
        other = other.copy_with(scheme="https", port=own.port)
    _check_network(access, own, other)
    return str(other)


def origin_of(url: str | httpx.URL) -> tuple[str, str, int | None]:
    """Return scheme, host and port: what a login is given for; the port that a scheme has anyway is None."""
    parts = parsed(url) if isinstance(url, str) else url
    return parts.scheme, parts.host, parts.port


@lru_cache(maxsize=256)
def parsed(url: str) -> httpx.URL:
    """Return an address in its parts, once for all who ask: that of an upload is long, and each chunk's is another.

    Raises httpx.InvalidURL.
    """
    return httpx.URL(url)


def _check_network(access: Access, own: httpx.URL, other: httpx.URL) -> None:
    if other.host == own.host or _PRIVACY[reach_of(other.host)] <= _PRIVACY[reach_of(own.host)]:
        return
    host = other.netloc.decode("ascii")
    if host not in access.may_lead_to and other.host not in access.may_lead_to:
        hint = f'to allow it, in the config: registries: {{"{access.host}": {{may_lead_to: ["{host}"]}}}}'
        raise RegistryError(f"{access.host} leads to {host}, an address of a private network", hint=hint)
