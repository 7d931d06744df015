"""A login for a registry, as a value that never shows its secrets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from lj_image.oci.reference import DOCKER_HUB

HUB_KEY: Final = "https://index.docker.io/v1/"
"""Under which `docker login` keeps the login of Docker Hub."""
HUB_HOSTS: Final = (DOCKER_HUB, "index.docker.io", "registry-1.docker.io")
TOKEN_USER: Final = "<token>"
"""The user's name by which a helper says that the secret is an identity token."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """A login; its secrets are never shown."""

    username: str
    password: str = field(default="", repr=False)
    identity_token: str = field(default="", repr=False)
    """Instead of a password: what a token service gives tokens for."""
    registry_token: str = field(default="", repr=False)
    """What the registry itself takes, as it is."""


def key_of(host: str) -> str:
    """Return under which key the docker config has a host."""
    return HUB_KEY if host in HUB_HOSTS else host
