"""On a real file system: what a full or a read-only one does to a download."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lj_image.config import Config, ConfigFile
from lj_image.errors import ArtifactError
from lj_image.lock.fetch import fetch
from lj_image.lock.lock import Artifact, LockedDistribution
from lj_image.lock.store import ArtifactStore
from unit.lock.loopback import Loopback, start

MIB = 1024 * 1024


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    loopback = Loopback()
    server = start(loopback)
    for name in ("UV_INDEX", "UV_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("UV_DEFAULT_INDEX", loopback.simple)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield loopback
    server.shutdown()
    server.server_close()


def offered(index: Loopback, name: str, size_bytes: int) -> LockedDistribution:
    content = os.urandom(size_bytes)
    digest = hashlib.sha256(content).hexdigest()
    artifact = Artifact(f"{name}-1.0-py3-none-any.whl", size_bytes, digest, "wheel")
    index.projects[name] = {artifact.file: content}
    return LockedDistribution(name, "1.0", artifact, "pypi", "app")


def config_of(disk: Path) -> Config:
    return Config(file=None, values=ConfigFile(), cache_dir=disk)


def visible(store: ArtifactStore) -> list[Path]:
    return [path for path in (store.root / "sha256").rglob("*") if path.is_file() and not path.suffix]


def test_disk_that_is_too_small_is_told_before_the_download(small_disk: Path, index: Loopback) -> None:
    item = offered(index, "large", 20 * MIB)
    with pytest.raises(ArtifactError, match=r"20,971,520 bytes are needed, [\d,]+ bytes are free"):
        fetch([item], config_of(small_disk), ArtifactStore(small_disk))
    assert not index.asked(item.artifact.file)


def test_disk_that_fills_meanwhile_keeps_a_beginning_that_a_later_run_resumes(
    small_disk: Path, index: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = offered(index, "large", 6 * MIB)
    store = ArtifactStore(small_disk)
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 4 * MIB)
    monkeypatch.setattr(ArtifactStore, "free_bytes", lambda self: 10**9)  # as it was when the download began
    with pytest.raises(ArtifactError, match="no space left for the cache") as error:
        fetch([item], config_of(small_disk), store)
    assert error.value.hint is not None
    assert "LJ_IMAGE_CACHE" in error.value.hint
    assert visible(store) == []
    kept = store.partial(item.artifact.sha256).stat().st_size
    assert MIB <= kept < 6 * MIB
    ballast.unlink()
    fetch([item], config_of(small_disk), store)
    assert index.asked(item.artifact.file)[-1]["Range"] == f"bytes={kept}-"
    assert store.has(item.artifact)


def test_beginning_that_is_not_worth_resuming_gives_its_place_back(
    small_disk: Path, index: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = offered(index, "large", 6 * MIB)
    store = ArtifactStore(small_disk)
    (small_disk / "ballast").write_bytes(b"x" * (8 * MIB - 300_000))
    monkeypatch.setattr(ArtifactStore, "free_bytes", lambda self: 10**9)
    with pytest.raises(ArtifactError, match="no space left for the cache"):
        fetch([item], config_of(small_disk), store)
    assert not store.partial(item.artifact.sha256).exists()


def test_read_only_disk_serves_what_it_has(small_disk: Path, index: Loopback) -> None:
    here, absent = offered(index, "here", MIB), offered(index, "absent", MIB)
    fetch([here], config_of(small_disk), ArtifactStore(small_disk))
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    store = ArtifactStore(small_disk)
    assert fetch([here], config_of(small_disk), store) == ()
    assert store.require(here.artifact).stat().st_size == MIB
    with pytest.raises(ArtifactError, match="cannot be written to"):
        fetch([here, absent], config_of(small_disk), store)


def test_damaged_file_on_a_read_only_disk_is_not_used(small_disk: Path, index: Loopback) -> None:
    item = offered(index, "here", MIB)
    store = ArtifactStore(small_disk)
    fetch([item], config_of(small_disk), store)
    store.path(item.artifact.sha256).write_bytes(b"x" * MIB)
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    assert not ArtifactStore(small_disk).has(item.artifact)
    with pytest.raises(ArtifactError, match="cannot be written to"):
        fetch([item], config_of(small_disk), ArtifactStore(small_disk))
