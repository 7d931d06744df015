"""Registry logins from where docker, podman and CI systems keep them: in files, in helpers, in the environment."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lj_image.registry.credential_helper import ask_helper, program_of
from lj_image.registry.docker_config import DockerConfig, docker_configs
from lj_image.registry.login import HUB_KEY, Credentials

__all__ = ["HUB_KEY", "Credentials", "Login", "credentials_for", "login_for"]


@dataclass(frozen=True, slots=True)
class Login:
    """Where the docker config, or ours, keeps the login for a host; never the login itself."""

    kind: Literal["none", "auths", "credsStore", "credHelpers", "config"]
    program: str | None = None
    """The helper's, such as docker-credential-pass."""
    program_found: bool = True


def credentials_for(place: str, environ: Mapping[str, str] = os.environ) -> Credentials | None:
    """Return the login for a registry's host, or host and repository; None for an anonymous visit.

    $DOCKER_AUTH_CONFIG, the docker config, then podman's files: the first that has one. In each, the helper of the
    host goes before that of all hosts, and that before what the file itself holds. Raises PublishError for a config
    that is unreadable, and for a helper that fails.
    """
    for config in docker_configs(environ, Path.home()):
        login = _login_in(config, place)
        if login.program is not None and (found := ask_helper(login.program, place.partition("/")[0])) is not None:
            return found
        if (kept := config.login(place)) is not None:
            return kept
    return None


def login_for(place: str, environ: Mapping[str, str] = os.environ) -> Login:
    """Say where the login for a place would come from; raises PublishError for a config that is unreadable."""
    logins = (_login_in(config, place) for config in docker_configs(environ, Path.home()))
    return next((login for login in logins if login.kind != "none"), Login("none"))


def _login_in(config: DockerConfig, place: str) -> Login:
    if helper := config.helper(place):
        return _by_helper("credHelpers", helper)
    if config.store:
        return _by_helper("credsStore", config.store)
    return Login("auths" if config.has(place) else "none")


def _by_helper(kind: Literal["credsStore", "credHelpers"], helper: str) -> Login:
    program = program_of(helper)
    return Login(kind, program, shutil.which(program) is not None)
