"""What this machine adds to a release: addresses, credentials' places, mirrors, rewriting. Never in git.

Read from `LJ_IMAGE_CONFIG`, else from `config.yaml` in the user's config folder; everything is optional.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from lj_image.documents.strict import Strict
from lj_image.errors import Location, ManifestError

Url = Annotated[str, StringConstraints(pattern=r"^(https?|file)://[^\s@]+$")]
"""An address without user and password in it: they would end in logs."""


class Source(Strict):
    """An address that may want a password, which is named here and kept elsewhere."""

    url: Url
    username: str | None = None
    password_env: str | None = None
    """The environment variable that holds the password."""
    password_file: str | None = None

    def password(self) -> str | None:
        """Return the password; raises ManifestError when the place named for it does not hold one."""
        if self.password_env is not None:
            if (value := os.environ.get(self.password_env)) is None:
                raise ManifestError(
                    f"the environment variable {self.password_env} is not set",
                    hint=f"it holds the password for {self.url}",
                )
            return value
        if self.password_file is not None:
            return _first_line(Path(self.password_file).expanduser())
        return None


class Secret(Strict):
    """Where a build secret is kept."""

    env: str | None = None
    file: str | None = None

    def read(self, name: str) -> bytes:
        """Return the secret; raises ManifestError when its place does not hold one."""
        if self.env is not None and (value := os.environ.get(self.env)) is not None:
            return value.encode()
        if self.file is not None:
            return _contents(Path(self.file).expanduser())
        raise ManifestError(
            f"the secret {name!r} is not there",
            hint=f"set the environment variable {self.env}" if self.env else f"add secrets.{name}.file to the config",
        )


class EndpointsConfig(Strict):
    """How the addresses of endpoints change on this machine."""

    rewrite: dict[str, str] = Field(default_factory=dict)
    """Host, which may hold `{region}` -> host and optional path, which may hold `{region}` too."""

    def rewritten(self, host: str, region: str | None) -> str:
        """Return what stands for `host`: itself, or what a rule gives."""
        for pattern, target in self.rewrite.items():
            expression = re.escape(pattern).replace(r"\{region\}", "(?P<region>[a-z0-9-]+)")
            if (found := re.fullmatch(expression, host)) is not None:
                return target.replace("{region}", found.groupdict().get("region") or region or "")
        return host


class BuildConfig(Strict):
    """How builds run on this machine."""

    network: Literal["default", "host", "none"] = "default"
    """For the steps that need one; installs of locked files always run without."""
    ca_bundle: str | None = None
    """A file of certificates that steps with a network need behind a proxy; given as a secret, never a layer."""


class ConfigFile(Strict):
    """The schema of `config.yaml`."""

    variant: str | None = None
    """The variant to take when none is asked for."""
    cache: str | None = None
    indexes: dict[str, Source] = Field(default_factory=dict)
    archives: dict[str, Source] = Field(default_factory=dict)
    secrets: dict[str, Secret] = Field(default_factory=dict)
    """For steps that run commands; mounted while they run, never in a layer."""
    mirrors: dict[str, str] = Field(default_factory=dict)
    """Registry host in a base's reference -> the registry, and optional path, to take it from."""
    endpoints: EndpointsConfig = Field(default_factory=EndpointsConfig)
    build: BuildConfig = Field(default_factory=BuildConfig)


@dataclass(frozen=True)
class Config:
    """The config in force, and where it came from."""

    file: Path | None
    values: ConfigFile
    cache_dir: Path

    def mirrored(self, reference: str) -> str:
        """Return where a base's reference is really taken from."""
        host, slash, rest = reference.partition("/")
        mirror = self.values.mirrors.get(host)
        return f"{mirror}{slash}{rest}" if mirror else reference

    def in_force(self) -> tuple[str, ...]:
        """Return one line for each rule that changes an address, to be shown with every command it touches."""
        mirrors = (f"mirror {host} → {to}" for host, to in self.values.mirrors.items())
        rewrites = (f"endpoint {host} → {to}" for host, to in self.values.endpoints.rewrite.items())
        return (*mirrors, *rewrites)


def load_config(environ: Mapping[str, str] = os.environ) -> Config:
    """Read the config; a file named by LJ_IMAGE_CONFIG must exist, the one in the user's folder need not."""
    import platformdirs

    named = environ.get("LJ_IMAGE_CONFIG")
    file = Path(named) if named else Path(platformdirs.user_config_dir("lj-image")) / "config.yaml"
    if not named and not file.exists():
        values, found = _defaults(), None
    else:
        values, found = _read(file), file
    cache = values.cache or environ.get("LJ_IMAGE_CACHE") or platformdirs.user_cache_dir("lj-image")
    return Config(file=found, values=values, cache_dir=Path(cache).expanduser().absolute())


def _defaults() -> ConfigFile:
    """Return what holds without a file, unvalidated: building the validators would take longer than `list` does."""
    return ConfigFile.model_construct(endpoints=EndpointsConfig.model_construct(), build=BuildConfig.model_construct())


def _read(file: Path) -> ConfigFile:
    from lj_image.documents.models import read_model

    values, document = read_model(file, ConfigFile)
    for name, source in (*values.indexes.items(), *values.archives.items()):
        if source.username and not (source.password_env or source.password_file):
            section = "indexes" if name in values.indexes else "archives"
            raise ManifestError(
                f"{section}.{name} has a user name but no place for the password",
                hint="add `password_env: NAME` or `password_file: PATH`",
                location=document.place_of((section, name)),
            )
    return values


def _first_line(path: Path) -> str:
    first, _, _ = _contents(path).partition(b"\n")
    return first.decode().rstrip("\r")


def _contents(path: Path) -> bytes:
    try:
        contents = path.read_bytes()
    except OSError as error:
        raise ManifestError(
            f"the secret's file cannot be read: {error.strerror}", location=Location(str(path))
        ) from None
    if not contents:
        raise ManifestError("the secret's file is empty", location=Location(str(path)))
    return contents
