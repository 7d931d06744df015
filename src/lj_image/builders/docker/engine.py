"""The engine that DOCKER_HOST names: how to reach it, what it can, and why it cannot be reached."""

from __future__ import annotations

import os
import shutil
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import docker
import requests
import urllib3
from docker.constants import DEFAULT_DOCKER_API_VERSION
from docker.errors import APIError, DockerException, ImageNotFound, TLSParameterError
from docker.utils import kwargs_from_env
from docker.utils.config import find_config_file

from lj_image.catalog.release import Platform
from lj_image.errors import EngineError

DEFAULT_HOST: Final = "unix:///var/run/docker.sock"
CONNECT_TIMEOUT_S: Final = 60  # of short calls; builds wait without a limit
FIRST_API_WITH_BUILDKIT: Final = (1, 39)  # Engine 18.09

WIRE_ERRORS: Final[tuple[type[Exception], ...]] = (
    DockerException,
    requests.RequestException,
    urllib3.exceptions.HTTPError,
    OSError,
)
"""What docker-py lets through when an engine cannot be reached or goes away."""


def host() -> str:
    """Return the engine's address, as the environment names it."""
    return os.environ.get("DOCKER_HOST") or DEFAULT_HOST


def connect() -> docker.APIClient:
    """Return a client for the engine of the environment.

    Raises EngineError when it is absent, refuses us or speaks another protocol.
    """
    with translated():
        settings = {"base_url": DEFAULT_HOST, **kwargs_from_env()}
        probe = _client(settings, version=DEFAULT_DOCKER_API_VERSION)
        version = probe.get(f"{probe.base_url}/version").json()["ApiVersion"]
        probe.close()
        return _client(settings, version)


def _client(settings: dict[str, Any], version: str) -> docker.APIClient:
    """Return a client that has not asked anything yet.

    docker-py would ask for the version while it still trusts the environment: REQUESTS_CA_BUNDLE would then stand in
    for the CA of a TLS engine, and an engine is not behind the proxy that leads to the internet either.
    """
    try:
        api = docker.APIClient(**settings, version=version, timeout=CONNECT_TIMEOUT_S)
    except ValueError:  # not chained: it may show what should have been a password
        raise EngineError(
            f"a login in {find_config_file()!s} is not the base64 of user:password",
            hint="log in anew: docker login REGISTRY",
        ) from None
    api.trust_env = False
    return api


@contextmanager
def translated(what: str = "") -> Iterator[None]:
    """Turn errors of the way to the engine, raised within this block, into EngineError."""
    try:
        yield
    except WIRE_ERRORS as error:
        raise engine_error(error, what) from error


def engine_error(error: BaseException, what: str = "") -> EngineError:
    """Return the error that explains why the engine could not be reached, or what it has refused."""
    if isinstance(error, APIError):
        return EngineError(f"{what or 'the engine refuses'}: {error.explanation or error}")
    for cause in _causes(error):
        match cause:
            case PermissionError():
                return EngineError(
                    f"no permission to use the engine at {host()}",
                    hint="add yourself to the group of the socket (often: docker), or set DOCKER_HOST",
                )
            case FileNotFoundError() | ConnectionError():
                return EngineError(
                    f"{what or 'no engine answers'} at {host()}",
                    hint="start the engine, or set DOCKER_HOST",
                )
            case ssl.SSLError() | TLSParameterError():
                reason = cause.msg if isinstance(cause, TLSParameterError) else cause
                return EngineError(
                    f"no trusted connection to the engine at {host()}: {reason}",
                    hint="check DOCKER_TLS_VERIFY and the files below DOCKER_CERT_PATH",
                )
    return EngineError(f"{what or 'cannot use the engine'} at {host()}: {error}", hint="docker info should answer")


def engine_gone() -> EngineError:
    """Return the error for an engine that went away in the middle of a build."""
    return EngineError(
        f"the engine at {host()} went away during the build",
        hint="see the engine's own log, then run the build again; finished steps are in its cache",
    )


def find_image(api: docker.APIClient, reference: str) -> dict[str, Any] | None:
    """Return what the engine knows of an image, None when it has none by that name or id."""
    with translated(f"looking for the image {reference}"):
        try:
            found: dict[str, Any] = api.inspect_image(reference)  # type: ignore[no-untyped-call]
        except ImageNotFound:
            return None
    return found


def foreign(api: docker.APIClient, platform: Platform) -> str | None:
    """Return the platform as an engine is asked for it, or None where it is the engine's own.

    Then nothing is asked for: engines before 20.10 refuse the question unless their experimental features are on.
    """
    with translated():
        own: object = api.version(api_version=False)["Arch"]
    return None if own == platform.architecture else str(platform)


def supports_buildkit(api: docker.APIClient) -> bool:
    """Tell whether a build may ask for BuildKit.

    Engine 20.10 has it but says so only when asked to build; `Builder-Version: 1` means that its owner turned it off.
    """
    with translated():
        advertised = api.get(f"{api.base_url}/_ping").headers.get("Builder-Version")
        if advertised is not None:
            return advertised == "2"
        version = api.version()
    names = [component.get("Name") for component in version.get("Components") or ()]
    number = tuple(int(part) for part in version["ApiVersion"].split("."))
    return names[:1] == ["Engine"] and version.get("Os") == "linux" and number >= FIRST_API_WITH_BUILDKIT


def free_bytes(api: docker.APIClient) -> int | None:
    """Return the free space where the engine keeps images, or None when that is on another machine."""
    with translated():
        root = Path(api.info().get("DockerRootDir") or "/")
    local = api.base_url.startswith(("http+docker://", "http+unix://")) and not host().startswith("ssh://")
    try:
        return shutil.disk_usage(root).free if local else None
    except OSError:  # the engine lives in a virtual machine, or its folder is not ours to see
        return None


def refusal(response: requests.Response) -> str | None:
    """Return what the engine says when it refuses a request, None when it does not."""
    if response.status_code < HTTPStatus.BAD_REQUEST:
        return None
    try:
        return str(response.json()["message"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {response.status_code} {response.text.strip()}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and all that it came from; docker-py and urllib3 hide the cause in chains and in arguments."""
    waiting: list[object] = [error]
    seen: list[object] = []
    while waiting:
        cause = waiting.pop(0)
        if isinstance(cause, BaseException) and cause not in seen:
            seen.append(cause)
            yield cause
            waiting += [cause.__cause__, cause.__context__, *cause.args]
        elif isinstance(cause, tuple):
            waiting += cause
