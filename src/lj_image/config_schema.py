"""What may stand in `config.yaml`, as pydantic models; `config.py` has the same fields as plain values.

Apart from those, since a command that starts with a config read before needs no validator.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from lj_image.documents.strict import Strict

Url = Annotated[str, StringConstraints(pattern=r"^(https?|file)://[^\s@]+$")]
"""An address without user and password in it: they would end in logs."""
Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$")]
"""Of a place; without a dot or colon, which hosts have."""


RegistryHost = Annotated[str, StringConstraints(pattern=r"^[a-z0-9.{}\[\]:_-]+$")]
"""Without a scheme or path, in small letters."""
LeadsTo = Annotated[str, StringConstraints(pattern=r"^[a-z0-9.\[\]:_-]+$")]


class SourceEntry(Strict):
    """An address that may want a password, which is named here and kept elsewhere."""

    url: Url
    username: str | None = None
    password_env: str | None = None
    """The environment variable that holds the password."""
    password_file: str | None = None


class SecretEntry(Strict):
    """Where a build secret is kept."""

    env: str | None = None
    file: str | None = None


class EndpointsEntry(Strict):
    """How the addresses of endpoints change on this machine."""

    rewrite: dict[str, str] = Field(default_factory=dict)
    """Host, which may hold `{region}` -> host and optional path, which may hold `{region}` too."""
    places: dict[Name, str] = Field(default_factory=dict)
    """Name, such as `staging` -> host and optional path of a registry that `promote --from` and `import --to` know by
    it."""


class RegistryEntry(Strict):
    """How one registry is reached from this machine, and who we are there."""

    plain_http: bool | None = None
    """Whether it is spoken to without TLS. Unsaid, this machine's own addresses are, and no others."""
    ca_bundle: str | None = None
    """A file of certificates in PEM form, trusted beside those of the machine. Paths count from this file's folder."""
    client_certificate: str | None = None
    """A file in PEM form, for a registry that wants to see our certificate."""
    client_key: str | None = None
    """Its key, without a password; unsaid, it is in the certificate's file."""
    username: str | None = None
    """A login, instead of the docker config's."""
    password_env: str | None = None
    """The environment variable that holds the password."""
    password_file: str | None = None
    """The file whose first line is the password."""
    deadline: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Seconds after which a run gives this registry up."""
    may_lead_to: list[LeadsTo] = Field(default_factory=list)
    """Hosts, with or without a port, in a private network or on this machine, to which the registry may send us on for
    uploads, blobs and logins. Names need no permission; bare addresses such as 10.1.2.3 do."""

    def faults(self) -> Iterator[tuple[str, str, str]]:
        """Give what does not fit together: the key, what is wrong with it, and the way out."""
        has_password = self.password_env is not None or self.password_file is not None
        if self.username and not has_password:
            yield "username", "a user name, and no place for the password", "add `password_env` or `password_file`"
        if has_password and not self.username:
            key = "password_file" if self.password_env is None else "password_env"
            yield key, "a place for a password, and no user name", "add `username`"
        if self.client_key and not self.client_certificate:
            yield "client_key", "a key without its certificate", "add `client_certificate`"
        for key in ("ca_bundle", "client_certificate"):
            if self.plain_http and getattr(self, key):
                yield key, "plain http has no certificates", "take one of the two away"


class BuildEntry(Strict):
    """How builds run on this machine."""

    network: Literal["default", "host", "none"] = "default"
    """For the steps that need one; installs of locked files always run without."""
    ca_bundle: str | None = None
    """A file of certificates that steps with a network need behind a proxy; given as a secret, never a layer."""
    zstd_level: int = Field(default=3, ge=1, le=19)
    """Of layers in zstd (`build --compression zstd`): more is smaller and slower. Levels above 19 are left out, since
    they take several times the memory, here and wherever the layer is unpacked."""


class ConfigSchema(Strict):
    """`config.yaml`, every key optional."""

    variant: str | None = None
    """The variant to take when none is asked for."""
    cache: str | None = None
    indexes: dict[str, SourceEntry] = Field(default_factory=dict)
    archives: dict[str, SourceEntry] = Field(default_factory=dict)
    secrets: dict[str, SecretEntry] = Field(default_factory=dict)
    """For steps that run commands; mounted while they run, never in a layer."""
    mirrors: dict[str, str] = Field(default_factory=dict)
    """Registry host in a base's reference -> the registry, and optional path, to take it from."""
    endpoints: EndpointsEntry = Field(default_factory=EndpointsEntry)
    registries: dict[RegistryHost, RegistryEntry] = Field(default_factory=dict)
    """Host, with its port if it is said, which may hold `{region}` -> how it is reached; an exact host goes first."""
    build: BuildEntry = Field(default_factory=BuildEntry)
