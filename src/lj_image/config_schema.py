"""What may stand in `config.yaml`, as pydantic models; `config.py` has the same fields as plain values.

Apart from those, since a command that starts with a config read before needs no validator.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from lj_image.documents.strict import Strict

Url = Annotated[str, StringConstraints(pattern=r"^(https?|file)://[^\s@]+$")]
"""An address without user and password in it: they would end in logs."""
Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$")]
"""Of a place; without a dot or colon, which hosts have."""


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
    build: BuildEntry = Field(default_factory=BuildEntry)
