"""The base as an engine describes it, for the engine's own platform and for another."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import docker
import pytest
from docker.errors import APIError

from lj_image.builders.docker.base import ensure_base
from lj_image.builders.docker.base_facts import ask_base
from lj_image.catalog.release import Base, BaseFacts, Platform
from lj_image.config import Config, ConfigFile
from lj_image.errors import EngineError

ELSEWHERE = "other.example/nvidia/pytorch@sha256:other"


class Engine:
    """Knows one image, under several names."""

    def __init__(self, *digests: str) -> None:
        self.digests = digests

    def inspect_image(self, reference: str) -> dict[str, Any]:
        return {"Id": "sha256:id", "Size": 1, "RepoDigests": list(self.digests), "RootFS": {"Layers": ["sha256:1"]}}


@pytest.mark.parametrize(
    ("digests", "expected"),
    [
        ((ELSEWHERE, "mirror.example:5000/nvidia/pytorch@sha256:ours"), "sha256:ours"),
        ((ELSEWHERE,), "sha256:other"),
        ((), "sha256:id"),
    ],
)
def test_the_digest_of_a_base_is_the_one_at_the_registry_it_comes_from(
    tmp_path: Path, digests: tuple[str, ...], expected: str
) -> None:
    values = ConfigFile(mirrors={"nvcr.io": "mirror.example:5000"})
    facts = BaseFacts("ngc", "3.12.3", "2.39", "/site", {}, {}, True, "bases/ngc.yaml")
    base = Base("nvcr.io/nvidia/pytorch:25.01-py3", None, facts)
    config = Config(file=None, values=values, cache_dir=tmp_path)
    found = ensure_base(cast("docker.APIClient", Engine(*digests)), base, config, Platform(), log=print)
    assert (found.digest, found.reference) == (expected, "mirror.example:5000/nvidia/pytorch:25.01-py3")


ARM64 = Platform("linux", "arm64")
NGC = Base("nvcr.io/nvidia/pytorch:25.03-py3", None, BaseFacts("ngc", "", "", "", {}, {}, False, "bases/ngc.yaml"))
FOUND = {
    "python": "3.12.3",
    "glibc": "2.39",
    "site_packages": "/usr/local/lib/python3.12/dist-packages",
    "executable": "/usr/bin/python3",
    "packages": {},
    "complaints": {},
}


class Amd64Engine:
    """Has one image at most; what it pulls is for the platform that was asked for, its own where none was."""

    def __init__(self, has: str | None = None, *, says: str = "", refuses: str = "") -> None:
        self.has, self.says, self.refuses = has, says, refuses
        self.pulled: list[str | None] = []
        self.created: list[str | None] = []

    def version(self, api_version: bool = True) -> dict[str, str]:
        return {"Arch": "amd64"}

    def inspect_image(self, reference: str) -> dict[str, Any]:
        if self.has is None:
            raise docker.errors.ImageNotFound("no such image")
        return {
            "Id": f"sha256:{self.has}",
            "Size": 1,
            "Architecture": self.has,
            "RepoDigests": [],
            "RootFS": {"Layers": ["sha256:1"]},
        }

    def pull(self, reference: str, *, platform: str | None, **_: object) -> Iterator[dict[str, str]]:
        self.pulled.append(platform)
        self.has = (platform or "linux/amd64").partition("/")[2]
        yield {"error": self.refuses} if self.refuses else {"status": "pulled"}

    def create_host_config(self, **_: object) -> dict[str, str]:
        return {}

    def create_container(self, reference: str, *, platform: str | None, **_: object) -> dict[str, str]:
        self.created.append(platform)
        return {"Id": "container"}

    def start(self, container: str) -> None:
        if self.refuses:
            raise APIError("500 Server Error", explanation=self.refuses)

    def wait(self, container: str, timeout: int | None) -> dict[str, int]:
        return {"StatusCode": 1 if "exec format" in self.says else 0}

    def logs(self, container: str) -> bytes:
        return self.says.encode()

    def remove_container(self, container: str, **_: object) -> None:
        self.removed = container


def ensured(engine: Amd64Engine, platform: Platform, tmp_path: Path) -> str:
    config = Config(file=None, values=ConfigFile(), cache_dir=tmp_path)
    return ensure_base(cast("docker.APIClient", engine), NGC, config, platform, log=lambda _: None).image_id


def asked(engine: Amd64Engine, platform: Platform) -> str:
    return ask_base(cast("docker.APIClient", engine), "base:1", platform).architecture


@pytest.mark.parametrize(
    ("has", "platform", "pulled"),
    [
        ("amd64", Platform(), []),
        ("arm64", ARM64, []),
        ("amd64", ARM64, ["linux/arm64"]),
        (None, ARM64, ["linux/arm64"]),
        ("arm64", Platform(), [None]),  # its own platform, which engines before 20.10 refuse to be asked for
    ],
)
def test_a_base_that_is_there_for_another_platform_is_pulled(
    has: str | None, platform: Platform, pulled: list[str | None], tmp_path: Path
) -> None:
    engine = Amd64Engine(has)
    assert ensured(engine, platform, tmp_path) == f"sha256:{platform.architecture}"
    assert engine.pulled == pulled


@pytest.mark.parametrize(
    ("refusal", "hint"),
    [
        ("no matching manifest for linux/arm64 in the manifest list entries", "not published for linux/arm64"),
        ("unauthorized: authentication required", "log in (docker login nvcr.io)"),
    ],
)
def test_a_base_that_cannot_be_pulled_says_what_to_do(refusal: str, hint: str, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="cannot be pulled") as caught:
        ensured(Amd64Engine(refuses=refusal), ARM64, tmp_path)
    assert hint in (caught.value.hint or "")


def test_a_base_is_asked_on_the_platform_that_is_meant() -> None:
    engine = Amd64Engine(says=json.dumps(FOUND | {"architecture": "arm64"}))
    assert asked(engine, ARM64) == "arm64"
    assert engine.created == ["linux/arm64"]
    own = Amd64Engine(says=json.dumps(FOUND | {"architecture": "amd64"}))
    assert asked(own, Platform()) == "amd64"
    assert own.created == [None]


# As Docker 20.10 logs it, and as runtimes that start the program themselves have the engine say it.
@pytest.mark.parametrize(
    "engine",
    [
        Amd64Engine(says="standard_init_linux.go:228: exec user process caused: exec format error\n"),
        Amd64Engine(refuses="failed to create task: exec /usr/bin/python3: exec format error: unknown"),
    ],
)
def test_an_engine_that_cannot_run_another_processors_programs_says_what_to_do(engine: Amd64Engine) -> None:
    with pytest.raises(EngineError, match="cannot run base:1 for linux/arm64") as caught:
        asked(engine, ARM64)
    assert "DOCKER_HOST" in (caught.value.hint or "")
    assert "qemu-user-static" in (caught.value.hint or "")
    assert engine.removed == "container"


@pytest.mark.parametrize(
    ("says", "platform"),
    [
        (json.dumps(FOUND | {"architecture": "amd64"}), ARM64),
        ("exec /usr/bin/python3: exec format error", Platform()),
    ],
)
def test_a_base_for_another_architecture_than_was_meant_is_refused(says: str, platform: Platform) -> None:
    with pytest.raises(EngineError, match=f"base:1 is not made for {platform.architecture}") as caught:
        asked(Amd64Engine(says=says), platform)
    assert "architectures" in (caught.value.hint or "")


def test_what_else_an_engine_refuses_is_told_as_it_is() -> None:
    with pytest.raises(EngineError, match="no space left on device"):
        asked(Amd64Engine(refuses="no space left on device"), ARM64)
