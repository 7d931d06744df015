"""How one registry is reached from this machine: plain or by TLS, with which certificates, and how patiently."""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Final, Literal

from lj_image.oci.reference import DOCKER_HUB

_HUB_HOST: Final = "registry-1.docker.io"


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a registry is waited for."""

    attempts: int = 6
    """In a row without one new byte, or one new answer."""
    longest_wait_s: float = 300.0
    """Between two attempts, whatever Retry-After says."""
    connect_s: float = 10.0
    idle_s: float = 120.0
    """No byte taken or given for so long is a failure."""
    commit_s: float = 900.0
    """For the answer that ends an upload: some registries copy gigabytes then."""
    deadline_s: float | None = None
    """For all that is done at one registry; None for no end."""


@dataclass(frozen=True, slots=True)
class Access:
    """The way to one registry."""

    host: str
    """With its port, if it is said."""
    plain_http: bool | None = None
    """None: on this machine's own addresses alone."""
    ca_bundle: Path | None = None
    """Certificates that are trusted, beside those of the machine, for this host and for where it leads."""
    client_certificate: Path | None = None
    client_key: Path | None = None
    """None where the key is in the certificate's file."""
    may_lead_to: tuple[str, ...] = ()
    """Hosts, with their port if it is not https's, that lie in a private network and may be led to all the same."""
    patience: Patience = Patience()

    @property
    def is_plain(self) -> bool:
        """Whether it is spoken to without TLS."""
        return is_loopback(self.host) if self.plain_http is None else self.plain_http

    @property
    def base(self) -> str:
        """The address below which everything of the protocol lies."""
        host = _HUB_HOST if self.host == DOCKER_HUB else self.host
        return f"{'http' if self.is_plain else 'https'}://{host}/v2/"


def is_loopback(host: str) -> bool:
    """Say whether a host is this machine, where engines speak plain http with registries."""
    return reach_of(host) == "loopback"


def reach_of(host: str) -> Literal["public", "private", "loopback"]:
    """Say from where a host, with or without a port, is reached, as far as its name tells.

    Names are not looked up: what one leads to may change between the question and the request.
    """
    name = name_of(host).lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):  # RFC 6761 §6.3
        return "loopback"
    address = _address(name)
    if address is None:
        return "public"
    if address.is_loopback or address.is_unspecified:
        return "loopback"
    return "public" if address.is_global else "private"


def name_of(host: str) -> str:
    """Return a host without its port."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0] if host.count(":") == 1 else host


def _address(name: str) -> IPv4Address | IPv6Address | None:
    """Read an address in any of the forms that connecting takes, `127.1` and `2130706433` among them."""
    with suppress(ValueError):
        found = ip_address(name.strip("[]").partition("%")[0])
        return (found.ipv4_mapped or found) if isinstance(found, IPv6Address) else found
    with suppress(OSError, ValueError):
        return IPv4Address(socket.inet_aton(name))
    return None
