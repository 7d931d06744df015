"""Registries as the config says they are reached: certificates, plain http, logins, deadlines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from lj_image.config import Config, RegistryConfig
from lj_image.oci.capabilities import Capabilities
from lj_image.registry.access import Access, Patience
from lj_image.registry.client import Intent, Registry
from lj_image.registry.credentials import Credentials, credentials_for

_PATIENT: Final = Patience()


def registry_at(
    host: str,
    config: Config,
    *,
    intent: Intent,
    capabilities: Capabilities | None = None,
    patience: Patience = _PATIENT,
    deadline_s: float | None = None,
) -> Registry:
    """Open a registry; nothing is asked of it yet. Raises PublishError for certificates that cannot be read.

    The earlier of `deadline_s`, the patience's and the config's deadline counts.
    """
    said = config.registry(host)
    deadlines = [end for end in (deadline_s, said.deadline, patience.deadline_s) if end is not None]
    access = access_of(host, said, replace(patience, deadline_s=min(deadlines, default=None)))
    return Registry(access, intent=intent, capabilities=capabilities, credentials=login_of(host, said))


def access_of(host: str, said: RegistryConfig, patience: Patience) -> Access:
    """Return the way to a host."""

    def path(name: str | None) -> Path | None:
        return None if name is None else Path(name)

    return Access(
        host,
        plain_http=said.plain_http,
        ca_bundle=path(said.ca_bundle),
        client_certificate=path(said.client_certificate),
        client_key=path(said.client_key),
        may_lead_to=said.may_lead_to,
        patience=patience,
    )


def login_of(host: str, said: RegistryConfig) -> Callable[[str], Credentials | None]:
    """Return where the login is asked for, no sooner than the registry wants one: the config's, else docker's."""
    username = said.username
    if username is None:
        return credentials_for
    return lambda place: Credentials(username, said.password(host) or "")
