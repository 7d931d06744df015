"""A source distribution built in a container of the base, with its build requirements from an index with password."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from lj_image.builders.docker.base import BaseImage
from lj_image.builders.docker.wheels import build_wheel
from lj_image.config import BuildConfig, Config, ConfigFile, Source
from lj_image.errors import BuildError
from lj_image.lock.lock import Artifact, LockedDistribution
from lj_image.lock.store import ArtifactStore
from unit.lock.loopback import Loopback, sdist, start

BACKEND = b"""
import os, zipfile
def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    if os.environ["OPS"] == "fail":
        raise SystemExit("no compiler here")
    name = "app-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w") as wheel:
        def add(path, text):
            wheel.writestr(zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0)), text)
        add("app/__init__.py", "OPS = %r" % os.environ["OPS"])
        add("app-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: app\\nVersion: 1.0\\n")
        add("app-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        add("app-1.0.dist-info/RECORD", "")
    return name
"""
PYPROJECT = '[build-system]\nrequires = ["backend==1.0"]\nbuild-backend = "backend"\n'


@pytest.fixture
def index() -> Iterator[Loopback]:
    loopback = Loopback(credentials=("robot", "s%c/ret"))
    server = start(loopback)
    loopback.offer("backend", "1.0", payload=BACKEND)
    yield loopback
    server.shutdown()
    server.server_close()


@pytest.fixture
def config(index: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.setenv("WORD", "s%c/ret")
    source = Source(url=index.simple, username="robot", password_env="WORD")
    values = ConfigFile(indexes={"pypi": source}, build=BuildConfig(network="host"))
    return Config(file=None, values=values, cache_dir=tmp_path)


@pytest.fixture
def base(engine: docker.APIClient, base_image: str) -> BaseImage:
    found = engine.inspect_image(base_image)
    return BaseImage(base_image, found["Id"], found["Id"], int(found["Size"]), tuple(found["RootFS"]["Layers"]))


@pytest.fixture
def source(config: Config) -> LockedDistribution:
    file, content = sdist("app", "1.0", PYPROJECT)
    artifact = Artifact(file, len(content), hashlib.sha256(content).hexdigest(), "sdist")
    ArtifactStore(config.cache_dir).add([content], file, "sdist")
    return LockedDistribution("app", "1.0", artifact, "pypi", "app")


def ours(engine: docker.APIClient) -> list[str]:
    """Return the containers that build this source; other runs may use the same base."""
    found = engine.containers(all=True)
    return [item["Id"] for item in found if "/tmp/lj-image/app-1.0.tar.gz" in item["Command"]]


def test_wheel_is_built_once_per_source_base_and_environment(
    engine: docker.APIClient, base: BaseImage, config: Config, source: LockedDistribution
) -> None:
    store, said = ArtifactStore(config.cache_dir), list[str]()
    built = build_wheel(engine, base, source, store, config, env={"OPS": "0"}, say=said.append)
    assert said == ["building a wheel of app 1.0 from its source, once"]
    with zipfile.ZipFile(store.require(built)) as wheel:
        assert wheel.read("app/__init__.py") == b"OPS = '0'"
    again = build_wheel(
        engine, base, source, ArtifactStore(config.cache_dir), config, env={"OPS": "0"}, say=said.append
    )
    assert again == built
    assert len(said) == 1
    other = build_wheel(engine, base, source, store, config, env={"OPS": "1"}, say=said.append)
    assert other.sha256 != built.sha256
    assert ours(engine) == []


def test_damaged_wheel_is_built_again(
    engine: docker.APIClient, base: BaseImage, config: Config, source: LockedDistribution
) -> None:
    store, said = ArtifactStore(config.cache_dir), list[str]()
    built = build_wheel(engine, base, source, store, config, env={"OPS": "0"}, say=said.append)
    store.path(built.sha256).chmod(0o644)
    store.path(built.sha256).write_bytes(b"damaged")
    assert build_wheel(engine, base, source, store, config, env={"OPS": "0"}, say=said.append) == built
    assert store.has(built)
    assert len(said) == 2


def test_failed_build_shows_the_end_of_its_output_and_no_password(
    engine: docker.APIClient, base: BaseImage, config: Config, source: LockedDistribution
) -> None:
    with pytest.raises(BuildError, match=r"app 1\.0 cannot be built from its source") as error:
        build_wheel(engine, base, source, ArtifactStore(config.cache_dir), config, env={"OPS": "fail"}, say=print)
    shown = "\n".join(error.value.lines())
    assert "no compiler here" in shown
    assert "s%c/ret" not in shown
    assert "s%25c" not in shown
    assert ours(engine) == []
