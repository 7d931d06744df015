"""Registry logins from the docker config: plain ones, and those of credential helpers."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import docker.auth
from docker.credentials.errors import StoreError
from docker.errors import DockerException
from docker.utils.config import find_config_file

from lj_image.errors import PublishError


def credentials_for(sent_to: str) -> dict[str, str]:
    """Return what the docker config, or a helper named in it, has for a registry; empty for an anonymous push."""
    host, _ = docker.auth.resolve_repository_name(sent_to)
    config = _docker_config()
    try:
        with warnings.catch_warnings():  # docker-py warns of an absent helper, and then raises
            warnings.simplefilter("ignore")
            found = config.resolve_authconfig(host)
    except DockerException as error:
        raise _helper_failed(config, host, error) from None
    except (ValueError, KeyError, TypeError):  # not chained: the helper's answer holds the secret
        raise PublishError(
            f"docker-credential-{config.get_credential_store(host)} gave no valid answer for {host}",
            hint=f"run: docker login {host}",
        ) from None
    return dict(found or {})


def _docker_config() -> docker.auth.AuthConfig:
    file = _config_file()
    try:
        # docker-py takes a config that it cannot read for an empty one, which would show up as a refused login.
        values = json.loads(Path(file).read_text()) if file and file.endswith(".json") else None
        return docker.auth.load_config(config_dict=values)
    except (OSError, ValueError, AttributeError, DockerException):  # not chained: such errors may quote a password
        raise PublishError(f"the docker config {file} cannot be read", hint="mend it, or run: docker login") from None


def _config_file() -> str | None:
    found = find_config_file()
    return None if found is None else os.fsdecode(found)  # type: ignore[arg-type]  # never a file descriptor


def _helper_failed(config: docker.auth.AuthConfig, host: str, error: DockerException) -> PublishError:
    cause = error.__cause__
    words = str(cause) if isinstance(cause, StoreError) else str(error)
    if "Secret" in words:  # a helper that fails after it has answered
        words = "it failed, and its words are withheld: they hold a secret"
    return PublishError(
        f"docker-credential-{config.get_credential_store(host)} has no login for {host}: {words}",
        hint=f"run: docker login {host}",
    )


@dataclass(frozen=True, slots=True)
class Login:
    """Where the docker config keeps the login for a host; never the login itself."""

    kind: Literal["none", "auths", "credsStore", "credHelpers"]
    program: str | None = None
    """The helper's, such as docker-credential-pass."""
    program_found: bool = True


def login_for(host: str) -> Login:
    """Say where the login for a registry host would come from; raises PublishError for a config that is unreadable."""
    config = _docker_config()
    helper = (config.cred_helpers or {}).get(host)
    if helper:
        return _by_helper("credHelpers", helper)
    if config.creds_store:
        return _by_helper("credsStore", config.creds_store)
    known = {docker.auth.convert_to_hostname(name) for name in config.auths or {}}
    return Login("auths" if host in known else "none")


def _by_helper(kind: Literal["credsStore", "credHelpers"], helper: str) -> Login:
    program = f"docker-credential-{helper}"
    return Login(kind, program, shutil.which(program) is not None)
