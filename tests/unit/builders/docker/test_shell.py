from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.errors import ImageNotFound

from lj_image.builders.docker.shell import Mount, Request, _gpus, _host_options, run_shell
from lj_image.builders.docker.terminal import ending_signals, size_changes, undisturbed
from lj_image.catalog.release import RunFlags
from lj_image.errors import EngineError, Interrupted, UsageError


@pytest.mark.parametrize(
    ("text", "mount"),
    [
        ("/a:/b", Mount("/a", "/b")),
        ("/a:/b:ro", Mount("/a", "/b", True)),
        ("/a:/b:rw", Mount("/a", "/b")),
        ("/with:colon:/b", Mount("/with:colon", "/b")),
    ],
)
def test_a_mount_is_read_as_docker_reads_it(text: str, mount: Mount) -> None:
    assert Mount.parse(text) == mount


def test_a_mount_may_be_relative_or_in_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    assert Mount.parse("models:/m").source == str(tmp_path / "models")
    assert Mount.parse("~/models:/m").source == "/home/me/models"


@pytest.mark.parametrize("text", ["", "/a", "/a:b", ":/b", "/a:ro", ":ro", "/a:/b:rx"])
def test_a_mount_without_two_places_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not HOST:CONTAINER"):
        Mount.parse(text)


def test_run_flags_become_what_the_engine_is_told() -> None:
    flags = RunFlags(ipc="host", network="host", privileged=True, shm_size="1g")
    assert _host_options(flags) == {
        "ipc_mode": "host",
        "network_mode": "host",
        "shm_size": "1g",
        "privileged": True,
    }
    assert _host_options(RunFlags()) == {}


class Engine(docker.APIClient):
    """Knows what runtimes it has, and no image."""

    def __init__(self, *runtimes: str) -> None:
        self.base_url = "http+docker://localhost"
        self._runtimes = runtimes

    def info(self) -> dict[str, Any]:
        return {"Runtimes": {name: {} for name in self._runtimes}}

    def inspect_image(self, image: str) -> dict[str, Any]:
        raise ImageNotFound("no such image")


@pytest.mark.parametrize(
    ("wanted", "runtimes", "counts"),
    [
        ("auto", (), []),
        ("auto", ("nvidia",), [-1]),
        ("all", ("nvidia",), [-1]),
        ("2", ("nvidia",), [2]),
        ("none", ("nvidia",), []),
    ],
)
def test_gpus_are_given_where_the_engine_has_the_runtime(
    wanted: str, runtimes: tuple[str, ...], counts: list[int]
) -> None:
    assert [request["Count"] for request in _gpus(Engine(*runtimes), wanted)] == counts


def test_gpus_that_were_asked_for_are_not_silently_left_out() -> None:
    with pytest.raises(EngineError, match="no runtime named nvidia"):
        _gpus(Engine("runc"), "all")
    with pytest.raises(UsageError, match="not auto, all, none or a number"):
        _gpus(Engine("nvidia"), "many")


def test_an_image_that_the_engine_has_no_more_is_to_be_built_again() -> None:
    with pytest.raises(EngineError, match="no longer has the image sha256:abc") as caught:
        run_shell(Engine(), Request("sha256:abc"), terminal=False, say=print)
    assert "lj-image build" in (caught.value.hint or "")


def test_sigterm_becomes_an_error_and_the_handler_of_before_comes_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Interrupted, match="stopped by SIGTERM"), ending_signals():
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_signal_waits_for_what_must_not_be_left_half_done() -> None:
    done = []
    with pytest.raises(Interrupted), ending_signals():  # noqa: PT012
        with undisturbed():
            os.kill(os.getpid(), signal.SIGTERM)
            done.append(True)
        pytest.fail("the signal comes right afterwards")
    assert done


def test_many_changes_of_size_are_one_and_never_block() -> None:
    with size_changes() as changes:
        for _ in range(70_000 // 100):
            os.kill(os.getpid(), signal.SIGWINCH)
        assert os.read(changes, 99_999)
