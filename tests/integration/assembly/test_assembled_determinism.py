"""The same bytes anywhere: whatever cache, zone, umask, folder, hash seed, processes or Python builds them."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from workshop import NOWHERE, Workshop

from standins.commands import Project

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def expected(prepared: Project, base: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the manifest's digest, which has those of all layers in it, from an ordinary build."""
    workshop = Workshop.copied(prepared, tmp_path_factory.mktemp("expected") / "copy", base)
    return str(workshop.build()["manifest"])


@pytest.mark.parametrize(
    "env",
    [{"TZ": "Asia/Tokyo"}, {"TZ": "America/St_Johns", "LC_ALL": "tr_TR.UTF-8"}, {"PYTHONHASHSEED": "12345"}],
    ids=["Tokyo", "Newfoundland", "hash seed"],
)
def test_the_environment_decides_nothing(env: dict[str, str], workshop: Workshop, expected: str) -> None:
    assert workshop.build(**env)["manifest"] == expected


def test_neither_umask_nor_the_folder_where_it_was_called_decides(
    workshop: Workshop, expected: str, tmp_path: Path
) -> None:
    command = " ".join(map(shlex.quote, (sys.executable, "-m", "lj_image.cli", *workshop.arguments("--json"))))
    env = workshop.project.environment()
    script = f"umask 077 && cd deep && exec {command}"
    deep = workshop.project.folder / "deep"
    deep.mkdir()
    done = subprocess.run(["sh", "-c", script], env=env, cwd=deep.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["manifest"] == expected
    assert {oct(path.stat().st_mode & 0o777) for path in (workshop.oci / "blobs/sha256").iterdir()} == {"0o444"}


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_the_number_of_processes_decides_nothing(workers: int, workshop: Workshop, expected: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WITH_WORKERS, str(workers), *workshop.arguments("--json")],
        cwd=workshop.project.folder,
        env=workshop.project.environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["manifest"] == expected


_WITH_WORKERS = """
import sys
from lj_image.builders.oci import assemble, crew
made = crew.assemble_layers
assemble.assemble_layers = lambda recipes, cache_dir, **more: made(recipes, cache_dir, **{**more, "workers": workers})
workers = int(sys.argv[1])
from lj_image.cli import run
sys.exit(run(sys.argv[2:]))
"""


def test_files_of_another_time_and_owner_are_the_same_layers(workshop: Workshop, expected: str) -> None:
    for path in (workshop.project.folder / "images").rglob("*"):
        os.utime(path, (1, 1))
        if os.geteuid() == 0:
            os.chown(path, 12345, 54321)
    assert workshop.build()["manifest"] == expected


def test_what_is_made_again_is_the_same(workshop: Workshop, expected: str) -> None:
    workshop.build()
    assert workshop.build("--no-cache")["manifest"] == expected


def test_a_source_date_epoch_changes_the_layers_with_something_later_and_no_other(workshop: Workshop) -> None:
    plain = set(workshop.layers(workshop.build()["manifest"]))
    clamped = set(workshop.layers(workshop.build(SOURCE_DATE_EPOCH="1700000000")["manifest"]))
    assert len(plain - clamped) == len(clamped - plain) == 3, "those with wheels, which are of 2024 and later"
    assert set(workshop.layers(workshop.build(SOURCE_DATE_EPOCH="99999999999")["manifest"])) == plain


def test_another_python_gives_the_same_bytes(workshop: Workshop, expected: str, tmp_path: Path) -> None:
    uv = Path(sys.executable).with_name("uv")
    env = {**os.environ, "VIRTUAL_ENV": str(tmp_path / "venv")}
    wanted = max(Path.home().glob(".pyenv/versions/3.13.*/bin/python"), default="3.13")
    made = subprocess.run([uv, "venv", "-q", "--python", wanted, tmp_path / "venv"], env=env, capture_output=True)
    if made.returncode:
        pytest.skip(f"no Python 3.13 can be had here: {made.stderr.decode().strip()[-200:]}")
    installed = subprocess.run(
        [uv, "pip", "install", "-q", "--python", tmp_path / "venv", ROOT], env=env, capture_output=True
    )
    if installed.returncode:
        pytest.skip(f"the package's requirements cannot be had for 3.13: {installed.stderr.decode().strip()[-200:]}")
    python = tmp_path / "venv/bin/python"
    assert "3.13" in subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout
    done = subprocess.run(
        [tmp_path / "venv/bin/lj-image", *workshop.arguments("--json")],
        cwd=workshop.project.folder,
        env=workshop.project.environment() | NOWHERE,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["manifest"] == expected
