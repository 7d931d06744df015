"""What this machine adds to a release: addresses, credentials' places, mirrors, rewriting. Never in git.

Read from `LJ_IMAGE_CONFIG`, else from `config.yaml` in the user's config folder; everything is optional.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from lj_image.errors import Location, ManifestError
from lj_image.snapshot import Snapshots, decode


@dataclass(frozen=True, slots=True)
class Source:
    """An address that may want a password, which is named here and kept elsewhere."""

    url: str
    username: str | None = None
    password_env: str | None = None
    """The environment variable that holds the password."""
    password_file: str | None = None

    def password(self) -> str | None:
        """Return the password; raises ManifestError when the place named for it does not hold one."""
        return _password(self.password_env, self.password_file, self.url)


@dataclass(frozen=True, slots=True)
class Secret:
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


@dataclass(frozen=True, slots=True)
class EndpointsConfig:
    """How the addresses of endpoints change on this machine."""

    rewrite: Mapping[str, str] = field(default_factory=dict)
    """Host, which may hold `{region}` -> host and optional path, which may hold `{region}` too."""
    places: Mapping[str, str] = field(default_factory=dict)
    """Name, such as `staging` -> host and optional path of a registry that releases are taken from or brought to."""

    def rewritten(self, host: str, region: str | None) -> str:
        """Return what stands for `host`: itself, or what a rule gives."""
        for pattern, target in self.rewrite.items():
            if (found := _match(pattern, host)) is not None:
                return target.replace("{region}", found.groupdict().get("region") or region or "")
        return host


@dataclass(frozen=True, slots=True)
class RegistryConfig:
    """How one registry is reached from this machine, and who we are there."""

    plain_http: bool | None = None
    """Whether it is spoken to without TLS; None: on this machine's own addresses alone."""
    ca_bundle: str | None = None
    client_certificate: str | None = None
    client_key: str | None = None
    username: str | None = None
    password_env: str | None = None
    password_file: str | None = None
    deadline: float | None = None
    """Seconds for all that is done there in one run."""
    may_lead_to: tuple[str, ...] = ()
    """Hosts of a private network, or this machine, to which it may send us on."""

    def password(self, host: str) -> str | None:
        """Return the password; raises ManifestError when the place named for it does not hold one."""
        return _password(self.password_env, self.password_file, host)

    def below(self, folder: Path) -> RegistryConfig:
        """Return the same, its files' paths counted from a folder."""
        names = ("ca_bundle", "client_certificate", "client_key", "password_file")
        said = {name: path for name in names if (path := getattr(self, name)) is not None}
        paths: dict[str, Any] = {name: str(folder / Path(path).expanduser()) for name, path in said.items()}
        return replace(self, **paths)


@dataclass(frozen=True, slots=True)
class BuildConfig:
    """How builds run on this machine."""

    network: Literal["default", "host", "none"] = "default"
    """For the steps that need one; installs of locked files always run without."""
    ca_bundle: str | None = None
    """A file of certificates that steps with a network need behind a proxy; given as a secret, never a layer."""
    zstd_level: int = 3
    """Of layers in zstd, 1 to 19."""


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """What `config.yaml` says; `config_schema.py` says what may stand there, and has the same fields."""

    variant: str | None = None
    cache: str | None = None
    indexes: Mapping[str, Source] = field(default_factory=dict)
    archives: Mapping[str, Source] = field(default_factory=dict)
    secrets: Mapping[str, Secret] = field(default_factory=dict)
    mirrors: Mapping[str, str] = field(default_factory=dict)
    endpoints: EndpointsConfig = field(default_factory=EndpointsConfig)
    registries: Mapping[str, RegistryConfig] = field(default_factory=dict)
    """Host, with its port if it is said, which may hold `{region}` -> how it is reached."""
    build: BuildConfig = field(default_factory=BuildConfig)


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

    def registry(self, host: str) -> RegistryConfig:
        """Return what is said of a registry's host, or of all whose pattern fits; files count from the config's own."""
        known = self.values.registries
        fitting = (entry for pattern, entry in known.items() if _match(pattern, host) is not None)
        found = known.get(host) or next(fitting, RegistryConfig())
        return found if self.file is None else found.below(self.file.absolute().parent)

    def in_force(self) -> tuple[str, ...]:
        """Return one line for each rule that changes an address, to be shown with every command it touches."""
        mirrors = (f"mirror {host} → {to}" for host, to in self.values.mirrors.items())
        rewrites = (f"endpoint {host} → {to}" for host, to in self.values.endpoints.rewrite.items())
        return (*mirrors, *rewrites)


def load_config(environ: Mapping[str, str] = os.environ, snapshots: Snapshots | None = None) -> Config:
    """Read the config; a file named by LJ_IMAGE_CONFIG must exist, the one in the user's folder need not.

    With `snapshots`, a file that was read before is not validated again. Raises ManifestError.
    """
    file = config_path(environ)
    values = ConfigFile() if file is None else _read_once(file, snapshots)
    cache = Path(values.cache).expanduser().absolute() if values.cache else default_cache_dir(environ)
    return Config(file, values, cache)


def config_path(environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return the file that is read: the named one, the user's, or none."""
    if named := environ.get("LJ_IMAGE_CONFIG"):
        return Path(named)
    import platformdirs

    file = Path(platformdirs.user_config_dir("lj-image")) / "config.yaml"
    return file if file.exists() else None


def default_cache_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Return where the cache is unless the config moves it."""
    if named := environ.get("LJ_IMAGE_CACHE"):
        return Path(named).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_cache_dir("lj-image"))


def state_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Return where this machine keeps what is to be gone on with: LJ_IMAGE_STATE, or the user's folder for that."""
    if named := environ.get("LJ_IMAGE_STATE"):
        return Path(named).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_state_dir("lj-image"))


def _read_once(file: Path, snapshots: Snapshots | None) -> ConfigFile:
    """Take what was read from the very same bytes before: building the validators takes longer than `list` does."""
    if snapshots is None or not file.is_file():
        return _read(file)
    return snapshots.once(ConfigFile, file.read_bytes, lambda: _read(file))


def _read(file: Path) -> ConfigFile:
    from lj_image.config_schema import ConfigSchema
    from lj_image.documents.models import read_model

    entry, document = read_model(file, ConfigSchema)
    for section, sources in (("indexes", entry.indexes), ("archives", entry.archives)):
        for name, source in sources.items():
            if source.username and not (source.password_env or source.password_file):
                raise ManifestError(
                    f"{section}.{name} has a user name but no place for the password",
                    hint="add `password_env: NAME` or `password_file: PATH`",
                    location=document.place_of((section, name)),
                )
    for host, registry in entry.registries.items():
        for key, fault, hint in registry.faults():
            raise ManifestError(
                f"registries.{host}: {fault}", hint=hint, location=document.place_of(("registries", host, key))
            )
    return decode(ConfigFile, entry.model_dump())


def _match(pattern: str, host: str) -> re.Match[str] | None:
    """Match a host with one in which `{region}` stands for any region."""
    return re.fullmatch(re.escape(pattern).replace(r"\{region\}", "(?P<region>[a-z0-9-]+)"), host)


def _password(variable: str | None, file: str | None, whose: str) -> str | None:
    if variable is not None:
        if (value := os.environ.get(variable)) is None:
            raise ManifestError(
                f"the environment variable {variable} is not set", hint=f"it holds the password for {whose}"
            )
        return value
    return None if file is None else _first_line(Path(file).expanduser())


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
