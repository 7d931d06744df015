"""How one registry is reached from this machine: plain or by TLS, with which certificates, and how patiently."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lj_image.oci.reference import DOCKER_HUB

_HUB_HOST: Final = "registry-1.docker.io"


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a registry is waited for."""

    attempts: int = 6
    """In a row without one new byte, or one new answer."""
    longest_wait_s: float = 300.0
    """Between two attempts, whatever Retry-After says."""
    connect_s: float = 20.0
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
    """Certificates that are trusted for this host, beside those that the machine trusts."""
    client_certificate: Path | None = None
    client_key: Path | None = None
    """None where the key is in the certificate's file."""
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
    name = host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host
    return name in ("localhost", "[::1]") or name.startswith("127.")
