"""The small services of a session: health, registry credentials, secrets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

import docker.auth
from docker.errors import DockerException

from lj_image.builders.docker.session.messages import (
    CredentialsRequest,
    CredentialsResponse,
    GetSecretRequest,
    GetSecretResponse,
    HealthCheckResponse,
)
from lj_image.builders.docker.session.stream import RpcError, Status, Stream

HEALTH_CHECK: Final = "/grpc.health.v1.Health/Check"
CREDENTIALS: Final = "/moby.filesync.v1.Auth/Credentials"
GET_SECRET: Final = "/moby.buildkit.secrets.v1.Secrets/GetSecret"

HEALTHY: Final[bytes] = HealthCheckResponse(status=1).SerializeToString()  # SERVING (grpc.health.v1)

# BuildKit names the host it talks to; the docker config knows Docker Hub by its index.
CONFIG_NAMES: Final = {"registry-1.docker.io": "docker.io"}


def unary(request_type: Any, answer: Callable[[Any], Any]) -> Callable[[Stream], None]:
    """Return the method that answers one request with one response."""

    def method(stream: Stream) -> None:
        message = stream.recv()
        if message is None:
            raise RpcError(Status.INTERNAL, "call without a request")
        stream.send(answer(request_type.FromString(message)).SerializeToString())

    return method


class Credentials:
    """Registry logins from the docker config, credential helpers included.

    BuildKit may ask a dozen times in one build and helpers are slow, so each host is looked up once. Token
    services (GetTokenAuthority and so on) are left out on purpose: BuildKit then fetches tokens itself.
    """

    def __init__(self, load: Callable[[], Mapping[str, Any]] = docker.auth.load_config) -> None:
        self._load = load
        self._config: Any = None
        self._known: dict[str, tuple[str, str]] = {}
        self._lock = threading.Lock()

    def of(self, host: str) -> tuple[str, str]:
        """Return user and password; an identity token comes with an empty user, nobody as two empty strings.

        Raises RpcError when a credential helper fails.
        """
        with self._lock:
            if host not in self._known:
                self._known[host] = self._look_up(host)
            return self._known[host]

    def _look_up(self, host: str) -> tuple[str, str]:
        try:
            self._config = self._config or self._load()
            found = docker.auth.resolve_authconfig(self._config, CONFIG_NAMES.get(host, host)) or {}
        except DockerException as error:
            raise RpcError(Status.UNKNOWN, f"no credentials for {host}: {error}") from error
        login = {key.lower(): text for key, text in found.items()}
        if login.get("identitytoken"):
            return "", login["identitytoken"]
        return login.get("username") or "", login.get("password") or ""

    def answer(self, request: Any) -> Any:
        """Answer Auth/Credentials."""
        user, password = self.of(request.host)
        return CredentialsResponse(username=user, secret=password)


class Secrets:
    """The build's secrets, by the id that a Dockerfile mounts them with."""

    def __init__(self, secrets: Mapping[str, bytes]) -> None:
        self._secrets = secrets

    def answer(self, request: Any) -> Any:
        """Answer Secrets/GetSecret; an unknown one fails the step that requires it, and no other."""
        if request.id not in self._secrets:
            raise RpcError(Status.NOT_FOUND, f"secret {request.id} not found")
        return GetSecretResponse(data=self._secrets[request.id])


def credentials_method(credentials: Credentials) -> Callable[[Stream], None]:
    """Return the method for Auth/Credentials."""
    return unary(CredentialsRequest, credentials.answer)


def secrets_method(secrets: Mapping[str, bytes]) -> Callable[[Stream], None]:
    """Return the method for Secrets/GetSecret."""
    return unary(GetSecretRequest, Secrets(secrets).answer)
