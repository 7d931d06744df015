"""Registry logins from the docker config: plain ones, and those of credential helpers."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path

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
