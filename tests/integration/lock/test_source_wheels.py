"""The distribution of our own images that has no wheel: the same one from this machine as from a container."""

from __future__ import annotations

import os
import time
from pathlib import Path

import docker
import pytest

from lj_image.builders.docker.base import BaseImage
from lj_image.builders.docker.wheels import build_wheel
from lj_image.builders.oci.base_layer import OciBase
from lj_image.builders.oci.base_links import BaseTree
from lj_image.builders.oci.source_wheels import wheel_of_source
from lj_image.catalog.release import BaseFacts
from lj_image.config import BuildConfig, Config, ConfigFile
from lj_image.errors import LjImageError
from lj_image.lock.fetch import fetch
from lj_image.lock.lock import Artifact, LockedDistribution
from lj_image.lock.lockfile import read_lock
from lj_image.lock.store import ArtifactStore
from lj_image.oci.image_config import ImageConfig

IMAGES = Path(__file__).parents[3] / "images"
LOCK = IMAGES / "training-nv-pytorch" / "locks" / "25.02-open.txt"
ENV = {"DS_BUILD_OPS": "0"}


@pytest.fixture(scope="module")
def deepspeed() -> LockedDistribution:
    found = read_lock(LOCK).distribution("deepspeed")
    assert found is not None
    assert found.artifact.kind == "sdist"
    return found


def workplace(folder: Path, item: LockedDistribution) -> tuple[Config, ArtifactStore]:
    """Return a config with a cache of its own, and the source in its store."""
    config = Config(None, ConfigFile(build=BuildConfig(network="host")), folder)
    store = ArtifactStore(folder)
    try:
        fetch((item,), config, store)
    except LjImageError as error:
        pytest.skip(f"the source cannot be loaded: {error}")
    return config, store


def described(engine: docker.APIClient, reference: str) -> tuple[BaseImage, OciBase, BaseFacts]:
    """Return a base as each builder knows it, and what it has of pip's own tools."""
    found = engine.inspect_image(reference)
    diff_ids = tuple(found["RootFS"]["Layers"])
    settings = {"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": list(diff_ids)}}
    base = OciBase(reference, found["Id"], ImageConfig(settings), (), BaseTree({}))
    packages = {"setuptools": "66.1.1", "wheel": "0.38.4"}  # of Debian 12, of which the tests' base is made
    facts = BaseFacts("base", "3.11.2", "2.36", "/usr/local/lib/python3.11/dist-packages", packages, {}, True, "")
    return BaseImage(reference, found["Id"], found["Id"], int(found["Size"]), diff_ids), base, facts


def test_the_wheel_built_here_is_the_one_built_in_a_container(
    engine: docker.APIClient, base_image: str, deepspeed: LockedDistribution, tmp_path: Path
) -> None:
    image, base, facts = described(engine, base_image)
    made: list[Artifact] = []
    for folder in ("container", "here"):
        config, store = workplace(tmp_path / folder, deepspeed)
        if folder == "container":
            made.append(build_wheel(engine, image, deepspeed, store, config, env=ENV, say=print))
        else:
            made.append(wheel_of_source(deepspeed, base, facts, store, config, env=ENV, say=print))
    assert made[0] == made[1]


def test_both_builders_find_the_wheel_of_whoever_was_first(
    engine: docker.APIClient, base_image: str, deepspeed: LockedDistribution, tmp_path: Path
) -> None:
    image, base, facts = described(engine, base_image)
    config, store = workplace(tmp_path, deepspeed)
    said = list[str]()
    first = wheel_of_source(deepspeed, base, facts, store, config, env=ENV, say=said.append)
    assert build_wheel(engine, image, deepspeed, store, config, env=ENV, say=said.append) == first
    assert len(said) == 1


def test_place_umask_zone_and_hash_seed_do_not_change_the_real_wheel(
    deepspeed: LockedDistribution, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": []}}
    base = OciBase("base", "sha256:0", ImageConfig(settings), (), BaseTree({}))
    facts = BaseFacts("base", "3.11.2", "2.36", "/usr/local/lib/python3.11/dist-packages", {}, {}, True, "")
    made: list[Artifact] = []
    for folder, umask, zone, seed in (
        ("one", 0o022, "UTC", "0"),
        ("two, elsewhere", 0o077, "Asia/Kathmandu", "random"),
    ):
        config, store = workplace(tmp_path / folder, deepspeed)
        (tmp_path / folder / "tmp").mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / folder / "tmp"))
        monkeypatch.setenv("TZ", zone)
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        time.tzset()
        before = os.umask(umask)
        try:
            made.append(wheel_of_source(deepspeed, base, facts, store, config, env=ENV, say=print))
        finally:
            os.umask(before)
    assert made[0] == made[1]
