from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from lj_image.errors import ArtifactError
from lj_image.lock import store as store_module
from lj_image.lock.lock import Artifact
from lj_image.lock.store import ArtifactStore


@pytest.fixture
def artifact(store: ArtifactStore) -> Artifact:
    return store.add([b"hello ", b"world"], "hello.whl", "wheel")


def overwrite(path: Path, content: bytes) -> None:
    path.chmod(0o644)
    path.write_bytes(content)


def test_added_bytes_lie_read_only_under_their_digest(store: ArtifactStore, artifact: Artifact) -> None:
    assert artifact == Artifact("hello.whl", 11, hashlib.sha256(b"hello world").hexdigest(), "wheel")
    assert store.require(artifact).read_bytes() == b"hello world"
    assert store.path(artifact.sha256).stat().st_mode & 0o777 == 0o444
    assert artifact.sha256[:2] == store.path(artifact.sha256).parent.name


@pytest.mark.parametrize("content", [b"hello wor", b"hello world and more", b"hello-world"])
def test_changed_file_is_dropped_and_never_used(store: ArtifactStore, artifact: Artifact, content: bytes) -> None:
    assert store.has(artifact)
    overwrite(store.path(artifact.sha256), content)
    assert not store.has(artifact)
    assert not store.path(artifact.sha256).exists()
    with pytest.raises(ArtifactError, match=r"hello\.whl is not in the cache"):
        store.require(artifact)


def test_change_is_seen_by_another_process_too(store: ArtifactStore, artifact: Artifact) -> None:
    overwrite(store.path(artifact.sha256), b"hello-world")
    assert not ArtifactStore(store.root.parent).has(artifact)


def test_file_with_the_old_time_but_a_new_inode_is_looked_at(store: ArtifactStore, artifact: Artifact) -> None:
    path = store.path(artifact.sha256)
    before = path.stat()
    other = path.with_name("other")
    other.write_bytes(b"hello-world")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(path)
    assert not store.has(artifact)


def test_believed_file_is_not_hashed_again(
    store: ArtifactStore, artifact: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> str:
        raise AssertionError(f"{path} was hashed")

    monkeypatch.setattr(store_module, "sha256_of", refuse)
    assert ArtifactStore(store.root.parent).has(artifact)


def test_file_with_a_new_time_is_hashed_once_and_believed_again(store: ArtifactStore, artifact: Artifact) -> None:
    os.utime(store.path(artifact.sha256))
    assert store.has(artifact)
    assert store.has(artifact)


def test_damaged_marker_means_hashing(store: ArtifactStore, artifact: Artifact) -> None:
    store.path(artifact.sha256).with_suffix(".verified").write_text("[1, 2")
    assert ArtifactStore(store.root.parent).has(artifact)


def test_missing_names_each_digest_once(store: ArtifactStore, artifact: Artifact) -> None:
    absent = Artifact("a.whl", 1, "0" * 64, "wheel")
    assert store.missing([absent, artifact, absent]) == (absent,)


def test_nothing_is_visible_when_a_stream_breaks(store: ArtifactStore) -> None:
    def broken() -> object:
        yield b"beginning"
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        store.add(broken(), "a.whl", "wheel")  # type: ignore[arg-type]
    assert [path for path in store.root.rglob("*") if path.is_file()] == []


def test_cache_that_is_a_file_is_an_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    with pytest.raises(NotADirectoryError):
        ArtifactStore(tmp_path / "cache").prepare()
