"""Registry logins from the docker config: plain ones, and those of credential helpers.

Format: https://github.com/docker/cli/blob/master/cli/config/configfile/file.go, and of helpers
https://github.com/docker/docker-credential-helpers#development
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from lj_image.errors import PublishError
from lj_image.oci.reference import DOCKER_HUB

HUB_KEY: Final = "https://index.docker.io/v1/"
"""Under which `docker login` keeps the login of Docker Hub."""
_HUB_HOSTS: Final = (DOCKER_HUB, "index.docker.io", "registry-1.docker.io")
_TOKEN_USER: Final = "<token>"
"""The user's name by which a helper says that the secret is an identity token."""
_NO_LOGIN: Final = "credentials not found"
"""What a helper prints, among other words, when it has no login for a host (credentials/error.go)."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """A login; its secrets are never shown."""

    username: str
    password: str = field(default="", repr=False)
    identity_token: str = field(default="", repr=False)
    """Instead of a password: what a token service gives tokens for."""


@dataclass(frozen=True, slots=True)
class Login:
    """Where the docker config keeps the login for a host; never the login itself."""

    kind: Literal["none", "auths", "credsStore", "credHelpers"]
    program: str | None = None
    """The helper's, such as docker-credential-pass."""
    program_found: bool = True


def credentials_for(host: str) -> Credentials | None:
    """Return what the docker config, or a helper named in it, has for a registry's host; None for an anonymous visit.

    Raises PublishError for a config that is unreadable, and for a helper that fails.
    """
    config = _Config.read()
    login = login_for(host, config)
    if login.program is not None and (found := _from_helper(login.program, host)) is not None:
        return found
    return config.plain(host)


def login_for(host: str, config: _Config | None = None) -> Login:
    """Say where the login for a registry host would come from; raises PublishError for a config that is unreadable."""
    config = config or _Config.read()
    helper = config.helpers.get(_key(host)) or config.helpers.get(host)
    if helper:
        return _by_helper("credHelpers", helper)
    if config.store:
        return _by_helper("credsStore", config.store)
    return Login("none" if config.entry(host) is None else "auths")


@dataclass(frozen=True, slots=True)
class _Config:
    """What a docker config says of logins."""

    file: str
    auths: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    helpers: Mapping[str, str] = field(default_factory=dict)
    store: str = ""

    @classmethod
    def read(cls) -> _Config:
        folders = (os.environ.get("DOCKER_CONFIG"), Path.home() / ".docker")
        files = (Path(folder) / "config.json" for folder in folders if folder)
        file = next((file for file in files if file.exists()), None)
        if file is None:
            return cls("")
        try:
            return cls._parse(json.loads(file.read_text(encoding="utf-8")), str(file))
        except (OSError, ValueError, TypeError, AttributeError):  # not chained: such errors may quote a password
            raise _unreadable(str(file)) from None

    @classmethod
    def _parse(cls, values: Mapping[str, Any], file: str) -> _Config:
        auths = {str(key): dict(entry) for key, entry in (values.get("auths") or {}).items()}
        for entry in auths.values():
            _decoded(entry)
        helpers = {str(key): str(name) for key, name in (values.get("credHelpers") or {}).items()}
        return cls(file, auths, helpers, str(values.get("credsStore") or ""))

    def entry(self, host: str) -> Mapping[str, Any] | None:
        """Return the entry of a host, under whichever of the ways to write it."""
        wanted = _bare(_key(host))
        return next((entry for key, entry in self.auths.items() if _bare(_key(_bare(key))) == wanted), None)

    def plain(self, host: str) -> Credentials | None:
        """Return the login that is kept in the file itself."""
        entry = self.entry(host)
        return None if entry is None else _decoded(entry)


def _key(host: str) -> str:
    return HUB_KEY if host in _HUB_HOSTS else host


def _bare(key: str) -> str:
    """Return the host of a key, which may be an address."""
    return key.removeprefix("https://").removeprefix("http://").partition("/")[0]


def _decoded(entry: Mapping[str, Any]) -> Credentials | None:
    """Read an entry of auths; raises ValueError for what is none. An empty one says that a helper has the login."""
    token = str(entry.get("identitytoken") or "")
    username, password = str(entry.get("username") or ""), str(entry.get("password") or "")
    if entry.get("auth"):
        username, colon, password = base64.b64decode(entry["auth"], validate=True).decode().partition(":")
        if not colon:
            raise ValueError
    return Credentials(username, password.strip("\0"), token) if username or token else None


def _unreadable(file: str) -> PublishError:
    return PublishError(f"the docker config {file} cannot be read", hint="mend it, or run: docker login")


def _by_helper(kind: Literal["credsStore", "credHelpers"], helper: str) -> Login:
    program = f"docker-credential-{helper}"
    return Login(kind, program, shutil.which(program) is not None)


def _from_helper(program: str, host: str) -> Credentials | None:
    """Ask a helper; None where it knows no login."""
    if (path := shutil.which(program)) is None:
        raise _helper_failed(program, host, "it is not installed")
    done = subprocess.run([path, "get"], input=_key(host).encode(), capture_output=True, check=False)
    if done.returncode != 0:
        words = done.stdout.decode(errors="replace").strip()
        if _NO_LOGIN in words:
            return None
        if "Secret" in words:  # a helper that fails after it has answered
            words = "it failed, and its words are withheld: they hold a secret"
        raise _helper_failed(program, host, words)
    return _answered(done.stdout, program, host)


def _answered(answer: bytes, program: str, host: str) -> Credentials | None:
    try:
        values = json.loads(answer)
        username, secret = str(values["Username"]), str(values["Secret"])
    except (ValueError, KeyError, TypeError):  # not chained: the helper's answer holds the secret
        raise PublishError(f"{program} gave no valid answer for {host}", hint=f"run: docker login {host}") from None
    if not username and not secret:  # docker-credential-pass, for a host that it does not know
        return None
    return Credentials("", "", secret) if username == _TOKEN_USER else Credentials(username, secret)


def _helper_failed(program: str, host: str, words: str) -> PublishError:
    return PublishError(f"{program} has no login for {host}: {words}", hint=f"run: docker login {host}")
