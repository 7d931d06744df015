from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from unit.lock.loopback import Loopback, start

from lj_image.lock.store import ArtifactStore


@pytest.fixture
def serve() -> Iterator[Callable[..., Loopback]]:
    """Return a function that starts a server."""
    servers = []

    def begin(**options: object) -> Loopback:
        loopback = Loopback(**options)  # type: ignore[arg-type]
        servers.append(start(loopback))
        return loopback

    yield begin
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def index(serve: Callable[..., Loopback], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Loopback:
    """Return a server that is the default index of this machine's tools."""
    loopback = serve()
    for name in ("UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_INDEX_URL", "PIP_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("UV_DEFAULT_INDEX", loopback.simple)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return loopback


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "cache")
