"""Sources built on this machine, by backends that they hold themselves: no index is needed."""

from __future__ import annotations

import io
import os
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lj_image.builders.oci.base_layer import OciBase
from lj_image.builders.oci.base_links import BaseTree
from lj_image.builders.oci.source_wheels import wheel_of_source
from lj_image.builders.source_wheels.notes import SourceBuild, built_once
from lj_image.catalog.release import BaseFacts
from lj_image.config import Config, ConfigFile, Source
from lj_image.errors import BuildError
from lj_image.lock.lock import Artifact
from lj_image.lock.store import ArtifactStore
from lj_image.oci.descriptor import Platform
from lj_image.oci.image_config import ImageConfig
from standins.sources import locked, source
from unit.lock.loopback import Loopback, start

PYTHON = ".".join(map(str, sys.version_info[:2]))
FACTS = BaseFacts("base", f"{PYTHON}.0", "2.36", "/usr/lib/python3/dist-packages", {}, {}, True, "base.yaml")
BASE = OciBase("base", "sha256:0", ImageConfig.empty(Platform("linux", "amd64")), (), BaseTree({}))

Build = Callable[..., Artifact]


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    """Return a function that builds a source in a cache of its own, and keeps what was said."""
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")

    def call(
        content: bytes,
        *,
        cache: str = "cache",
        facts: BaseFacts = FACTS,
        values: ConfigFile | None = None,
        file: str = "app-1.0.tar.gz",
        said: list[str] | None = None,
        **env: str,
    ) -> Artifact:
        config = Config(None, values or ConfigFile(), tmp_path / cache)
        store = ArtifactStore(config.cache_dir)
        item = locked(content, store, file)
        say = (said if said is not None else []).append
        return wheel_of_source(item, BASE, facts, store, config, env=env, say=say)

    return call


def inside(wheel: Artifact, path: str, tmp_path: Path, cache: str = "cache") -> str:
    with zipfile.ZipFile(ArtifactStore(tmp_path / cache).require(wheel)) as archive:
        return archive.read(path).decode()


def test_a_source_becomes_a_wheel_once_and_the_user_is_told_whose_code_runs(build: Build, tmp_path: Path) -> None:
    said = list[str]()
    wheel = build(source(), OPS="0", said=said)
    assert build(source(), OPS="0", said=said) == wheel
    assert said == [
        "building a wheel of app 1.0 from its source, once: its own build code runs on this machine, not in a container"
    ]
    assert inside(wheel, "app/__init__.py", tmp_path) == "OPS = '0'"


def test_time_zone_umask_hash_seed_and_folder_leave_no_trace(
    build: Build, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plain = build(source(), cache="one")
    monkeypatch.setenv("TZ", "Pacific/Apia")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "elsewhere"))
    before = os.umask(0o077)
    try:
        other = build(source(), cache="two")
    finally:
        os.umask(before)
    assert other == plain


def test_build_code_sees_neither_this_users_environment_nor_the_home_folder(
    build: Build, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    wheel = build(source(), OPS="0")
    seen = inside(wheel, "app/seen.txt", tmp_path).split()
    assert "AWS_SECRET_ACCESS_KEY" not in seen
    assert {"OPS", "SOURCE_DATE_EPOCH", "PYTHONHASHSEED", "TZ"} <= set(seen)
    assert not [name for name in seen if name.startswith(("UV_", "PIP_"))]
    assert inside(wheel, "app/home.txt", tmp_path) == "False"


def test_a_wheel_that_another_builder_noted_is_taken_as_it_is(build: Build, tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path / "cache")
    compiled = "app-1.0-cp311-cp311-linux_x86_64.whl"
    wanted = SourceBuild(locked(source(), store), "", {"OPS": "0"})
    noted = built_once(wanted, store, lambda: store.add([b"x"], compiled, "wheel"), where="a container of the base")
    said = list[str]()
    assert build(source(), OPS="0", said=said) == noted
    assert said == []


def test_a_compiled_wheel_is_refused_with_the_way_out(build: Build) -> None:
    with pytest.raises(BuildError, match=r"app 1\.0 has compiled parts") as error:
        build(source(tag="cp311-cp311-linux_x86_64"))
    assert "--builder docker" in str(error.value.hint)
    assert "index" in str(error.value.hint)


def test_another_wheel_than_was_locked_is_not_taken(build: Build) -> None:
    with pytest.raises(BuildError, match="not app"):
        build(source(name="other"))


def test_a_failing_build_shows_the_end_of_its_output(build: Build) -> None:
    with pytest.raises(BuildError, match="cannot be built from its source on this machine") as error:
        build(source(fails=True))
    assert "no compiler here" in str(error.value.hint)
    assert "--builder docker" in str(error.value.hint)


def test_a_faulty_pyproject_is_told(build: Build) -> None:
    with pytest.raises(BuildError, match="`requires` must be an array"):
        build(source(pyproject="[build-system]\nrequires = 1\n"))


def test_a_python_that_is_missing_is_named_with_ways_out(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UV_PYTHON_DOWNLOADS", raising=False)
    facts = BaseFacts("base", "3.99.1", "2.36", "/usr/lib/python3/dist-packages", {}, {}, True, "base.yaml")
    with pytest.raises(BuildError, match=r"Python 3\.99") as error:
        build(source(), facts=facts)
    assert "UV_PYTHON_DOWNLOADS=automatic" in str(error.value.hint)
    assert "--builder docker" in str(error.value.hint)


def test_requirements_that_cannot_be_had_are_named(build: Build) -> None:
    nowhere = ConfigFile(indexes={"pypi": Source(url="http://127.0.0.1:9/simple")})
    with pytest.raises(BuildError, match="what it is built with cannot be had: missing-backend") as error:
        build(source(requires=("missing-backend",)), values=nowhere)
    assert "--builder docker" in str(error.value.hint)


@pytest.fixture
def index() -> Iterator[Loopback]:
    loopback = Loopback(credentials=("robot", "s%c/ret"))
    server = start(loopback)
    yield loopback
    server.shutdown()
    server.server_close()


def test_requirements_come_from_an_index_with_a_password_that_build_code_is_not_shown(
    build: Build, index: Loopback, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WORD", "s%c/ret")
    index.offer("tool", "1.0")
    values = ConfigFile(indexes={"pypi": Source(url=index.simple, username="robot", password_env="WORD")})
    wheel = build(source(requires=("tool",)), values=values)
    assert "WORD" not in inside(wheel, "app/seen.txt", tmp_path).split()
    assert index.asked("tool-1.0-py3-none-any.whl")


def test_without_a_network_requirements_come_from_what_uv_has_kept(
    build: Build, index: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.credentials = None
    index.offer("tool", "1.0")
    values = ConfigFile(indexes={"pypi": Source(url=index.simple)})
    first = build(source(requires=("tool",)), values=values, cache="one")
    monkeypatch.setattr(index, "body", lambda path: None)
    assert build(source(requires=("tool",)), values=values, cache="two").file == first.file


def test_a_requirement_that_is_a_source_itself_is_refused(build: Build, index: Loopback) -> None:
    index.credentials = None
    index.projects["tool"] = {"tool-1.0.tar.gz": source()}
    values = ConfigFile(indexes={"pypi": Source(url=index.simple)})
    with pytest.raises(BuildError, match="cannot be had: tool"):
        build(source(requires=("tool",)), values=values)


@pytest.mark.parametrize("path", ["../outside", "/outside", "app-1.0/../../outside"])
def test_a_path_that_leads_out_of_the_archive_is_refused(build: Build, path: str) -> None:
    with pytest.raises(BuildError, match="leads out of the archive"):
        build(source(files={path: "x"}))


def test_an_archive_without_a_folder_of_its_own_is_no_source(build: Build) -> None:
    with pytest.raises(BuildError, match="2 folders at its top"):
        build(source(files={"other/file": "x"}))


def test_a_damaged_archive_is_told(build: Build) -> None:
    with pytest.raises(BuildError, match="cannot be unpacked"):
        build(b"no archive")
    with pytest.raises(BuildError, match="cannot be unpacked"):
        build(source()[:-200])


def test_a_link_becomes_a_copy_and_one_that_leads_nowhere_is_refused(build: Build) -> None:
    def linked(target: str) -> bytes:
        content = io.BytesIO()
        with tarfile.open(fileobj=io.BytesIO(source())) as old, tarfile.open(fileobj=content, mode="w:gz") as new:
            for member in old:
                if member.name.endswith("backend.py"):
                    member.name = "app-1.0/real.py"
                new.addfile(member, old.extractfile(member))
            link = tarfile.TarInfo("app-1.0/backend.py")
            link.type, link.linkname = tarfile.SYMTYPE, target
            new.addfile(link)
        return content.getvalue()

    assert build(linked("real.py")).file == "app-1.0-py3-none-any.whl"
    with pytest.raises(BuildError, match="cannot be unpacked"):
        build(linked("/etc/passwd"))


def test_a_source_may_be_a_zip(build: Build) -> None:
    content = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(source())) as old, zipfile.ZipFile(content, "w") as new:
        for member in old:
            file = old.extractfile(member)
            assert file is not None
            new.writestr(member.name, file.read())
    assert build(content.getvalue(), file="app-1.0.zip").file == "app-1.0-py3-none-any.whl"
