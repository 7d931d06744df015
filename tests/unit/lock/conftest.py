from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lj_image.lock.store import ArtifactStore
from unit.lock.loopback import Loopback, start


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


@pytest.fixture(scope="session")
def uv_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return one cache for all tests: with a fresh one, uv examines the interpreter each time."""
    return tmp_path_factory.mktemp("uv-cache")


@pytest.fixture
def index(serve: Callable[..., Loopback], monkeypatch: pytest.MonkeyPatch, uv_cache: Path) -> Loopback:
    """Return a server that is the default index of this machine's tools."""
    loopback = serve()
    for name in ("UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_INDEX_URL", "PIP_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("UV_DEFAULT_INDEX", loopback.simple)
    monkeypatch.setenv("UV_CACHE_DIR", str(uv_cache))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return loopback


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "cache")
