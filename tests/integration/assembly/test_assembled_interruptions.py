"""Two builds at once, and builds that end too soon: each through the real command line, stopped at a known place."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from workshop import Workshop

HELD = """
import os, sys, time
from pathlib import Path
from lj_image.builders.oci import layer_job
written = layer_job._written
def held(*arguments):
    done = written(*arguments)
    if arguments[0].title == "bulk":
        Path(f"held-{os.getpid()}").touch()
        while not Path("go").exists():
            time.sleep(0.02)
    return done
layer_job._written = held
from lj_image.cli import run
sys.exit(run(sys.argv[1:]))
"""
"""The command line, whose largest layer is written and waits for a file before it may appear."""


@pytest.fixture
def start(workshop: Workshop) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Return a function that starts such a build in a process group of its own."""
    started: list[subprocess.Popen[str]] = []

    def begin(*more: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", HELD, *workshop.arguments("--json", *more)],
            cwd=workshop.project.folder,
            env=workshop.project.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def holder(workshop: Workshop) -> int:
    """Wait until a process holds its layer back, and return its id."""
    return int(wait_for(lambda: [path.name.partition("-")[2] for path in workshop.project.folder.glob("held-*")])[0])


def wait_for(found: Callable[[], list[str]], within_s: float = 60) -> list[str]:
    deadline = time.monotonic() + within_s
    while not (there := found()):
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.02)
    return there


def is_alive(process_id: int) -> bool:
    with suppress(FileNotFoundError):
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_two_builds_at_once_make_each_layer_once_and_the_same_image(
    workshop: Workshop, start: Callable[..., subprocess.Popen[str]]
) -> None:
    first = start()
    holder(workshop)
    second = start()
    time.sleep(1)
    assert second.poll() is None, "it waits for the layer that the other one has begun"
    (workshop.project.folder / "go").touch()
    said = [json.loads(process.communicate(timeout=60)[0]) for process in (first, second)]
    assert said[0]["manifest"] == said[1]["manifest"]
    assert len(list(workshop.project.folder.glob("held-*"))) == 1, "nobody wrote the layer a second time"
    assert workshop.leftovers() == []


def test_a_build_that_was_killed_leaves_no_layer_nobody_who_waits_and_a_way_to_go_on(
    workshop: Workshop, start: Callable[..., subprocess.Popen[str]]
) -> None:
    killed = start()
    worker = holder(workshop)
    killed.kill()
    killed.wait()
    wait_for(lambda: [] if worker != killed.pid and is_alive(worker) else ["gone"], within_s=10)
    notes = [json.loads(path.read_text()) for path in (workshop.oci / "layers").glob("*.json")]
    assert all(note["blob"]["size_bytes"] < 1_000_000 for note in notes), "the layer did not appear"
    assert not (workshop.project.cache / "records").exists()
    built = workshop.build()
    assert not built["up_to_date"]
    assert workshop.build("--no-cache")["manifest"] == built["manifest"]


def test_ctrl_c_ends_with_130_and_leaves_nothing_half_written(
    workshop: Workshop, start: Callable[..., subprocess.Popen[str]]
) -> None:
    process = start()
    holder(workshop)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert workshop.leftovers() == []
    assert not workshop.build()["up_to_date"]


def test_a_worker_that_was_killed_is_told_and_the_next_build_goes_on(
    workshop: Workshop, start: Callable[..., subprocess.Popen[str]]
) -> None:
    process = start()
    worker = holder(workshop)
    if worker == process.pid:
        pytest.skip("one processor: there is no other process to be killed")
    os.kill(worker, signal.SIGKILL)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "was killed" in said
    assert "Traceback" not in said
    assert not workshop.build()["up_to_date"]
