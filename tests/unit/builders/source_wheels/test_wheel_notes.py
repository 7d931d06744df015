"""What a note is kept under, and who finds it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lj_image.builders.source_wheels.notes import (
    SourceBuild,
    built_once,
    chain_id,
    is_pure,
    require_named,
)
from lj_image.errors import BuildError
from lj_image.lock.built_wheels import built_wheels
from lj_image.lock.lock import Artifact
from lj_image.lock.store import ArtifactStore
from standins.sources import locked

ONE = "sha256:" + "1" * 64
TWO = "sha256:" + "2" * 64


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path)


def test_chain_id_is_that_of_the_image_specification() -> None:
    assert chain_id([]) == ""
    assert chain_id([ONE]) == ONE
    # printf '%s %s' $ONE $TWO | sha256sum
    assert chain_id([ONE, TWO]) == "sha256:" + "9932074217c35353d2e03a3f5a86549f7c67bfeb0ba53e23d69f4d4c8f7958f5"


def test_a_wheel_is_found_by_whoever_wants_the_same(store: ArtifactStore) -> None:
    item, made = locked(b"source", store), list[str]()

    def make() -> Artifact:
        made.append("made")
        return store.add([b"wheel %d" % len(made)], "app-1.0-py3-none-any.whl", "wheel")

    wanted = SourceBuild(item, ONE, {"OPS": "0"})
    first = built_once(wanted, store, make, where="a container of the base")
    assert built_once(wanted, store, make, where="this machine") == first
    assert len(made) == 1
    built_once(SourceBuild(item, TWO, {"OPS": "0"}), store, make, where="this machine")
    built_once(SourceBuild(item, ONE, {"OPS": "1"}), store, make, where="this machine")
    assert len(made) == 3


def test_a_wheel_that_is_gone_is_built_again(store: ArtifactStore) -> None:
    wanted = SourceBuild(locked(b"source", store), ONE)

    def make() -> Artifact:
        return store.add([b"wheel"], "app-1.0-py3-none-any.whl", "wheel")

    wheel = built_once(wanted, store, make, where="this machine")
    store.drop(wheel.sha256)
    assert built_once(wanted, store, make, where="this machine") == wheel
    assert store.has(wheel)


def test_a_note_says_where_the_wheel_was_built_and_the_store_knows_its_source(
    store: ArtifactStore, tmp_path: Path
) -> None:
    wanted = SourceBuild(locked(b"source", store), ONE)
    wheel = built_once(
        wanted, store, lambda: store.add([b"w"], "app-1.0-py3-none-any.whl", "wheel"), where="this machine"
    )
    (known,) = built_wheels(tmp_path)
    assert (known.sha256, known.source_sha256) == (wheel.sha256, wanted.item.artifact.sha256)
    assert json.loads(known.note.read_text())["built_in"] == "this machine"


@pytest.mark.parametrize(
    ("file", "pure"),
    [
        ("app-1.0-py3-none-any.whl", True),
        ("app-1.0-py2.py3-none-any.whl", True),
        ("app-1.0-cp311-none-any.whl", True),
        ("app-1.0-cp311-cp311-linux_x86_64.whl", False),
        ("app-1.0-py3-none-linux_x86_64.whl", False),
    ],
)
def test_a_name_tells_whether_a_wheel_is_pure(file: str, pure: bool) -> None:
    assert is_pure(file) is pure


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("app-1.1-py3-none-any.whl", "not app 1.0"),
        ("other-1.0-py3-none-any.whl", "not app 1.0"),
        ("app.whl", "impossible name"),
    ],
)
def test_another_wheel_than_was_locked_is_refused(file: str, words: str, store: ArtifactStore) -> None:
    with pytest.raises(BuildError, match=words):
        require_named(file, locked(b"source", store))
