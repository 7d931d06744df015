"""A session from its opening to its end."""

from __future__ import annotations

import hashlib
import platform
import secrets as random
from collections.abc import Mapping
from types import TracebackType
from typing import Self

import docker

from lj_image.builders.docker.engine import translated
from lj_image.builders.docker.session import services, transport
from lj_image.builders.docker.session.filesync import DIFF_COPY, FileSync
from lj_image.builders.docker.session.server import Method, SessionServer
from lj_image.builders.docker.tree import Tree, source_date_epoch

HEADER = "X-Docker-Expose-Session"


class Session:
    """Serves one build; a context manager. It must be open before the build starts."""

    def __init__(
        self,
        api: docker.APIClient,
        trees: Mapping[str, Tree],
        secrets: Mapping[str, bytes],
        *,
        name: str = "",
        credentials: services.Credentials | None = None,
    ) -> None:
        self.id = random.token_hex(16)
        self._api = api
        self._name = name
        self._files = FileSync(trees, source_date_epoch())
        self._methods: dict[str, Method] = {
            DIFF_COPY: self._files.diff_copy,
            services.CREDENTIALS: services.credentials_method(credentials or services.Credentials()),
            services.GET_SECRET: services.secrets_method(secrets),
        }
        self._replies = {services.HEALTH_CHECK: services.HEALTHY}
        self._server: SessionServer | None = None

    @property
    def failure(self) -> str | None:
        """Why a file could not be sent, if that has happened."""
        return self._files.failure

    def __enter__(self) -> Self:
        """Open the session; raises EngineError when the engine refuses it."""
        with translated("cannot open a session with the engine"):
            pipe = transport.hijack(self._api, "/session", self._headers())
        self._server = SessionServer(pipe, self._methods, self._replies)
        self._server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the session and its threads. A build that is still running is not stopped by that."""
        if self._server:
            self._server.close()

    def _headers(self) -> tuple[tuple[str, str], ...]:
        """Return who we are and what we serve; methods are one header line each (moby: session/manager.go)."""
        methods = (*self._methods, *self._replies)
        return (
            (f"{HEADER}-Uuid", self.id),
            (f"{HEADER}-Name", "lj-image"),
            (f"{HEADER}-Sharedkey", self._shared_key()),
            *((f"{HEADER}-Grpc-Method", method) for method in methods),
        )

    def _shared_key(self) -> str:
        """Return what stays the same from one build of an image to the next.

        The engine keeps the context under it, and asks only for files that have changed.
        """
        return hashlib.sha256(f"lj-image\0{platform.node()}\0{self._name}".encode()).hexdigest()
