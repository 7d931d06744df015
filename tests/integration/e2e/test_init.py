"""The built wheel, installed into nothing, gives an empty folder a project that goes the whole way to an image."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from scratch import Scratch

ROOT = Path(__file__).parents[3]
CA_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
SETTINGS = ("LJ_IMAGE_", "UV_", "PYTHON", "PYTEST_", "VIRTUAL_ENV")
"""Beginnings of variables that would lead the installed program back to this repository."""


@dataclass(frozen=True)
class Installed:
    """A program that knows nothing of this repository, and the folder that it works in."""

    program: Path
    folder: Path
    env: dict[str, str]

    def run(self, *arguments: str) -> str:
        """Run a command that must succeed, and return its result."""
        return run([self.program, *arguments], self.folder, self.env)


def run(command: list[str | Path], folder: Path, env: dict[str, str]) -> str:
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{command}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel."""
    folder = tmp_path_factory.mktemp("dist")
    run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], ROOT, dict(os.environ))
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, wheel: Path, cache_dir: Path) -> Iterator[Installed]:
    """Install the wheel as a user would: `uv tool install`, in a home that holds nothing."""
    uv = Path(sys.executable).with_name("uv")
    kept_wheels = subprocess.run([uv, "cache", "dir"], capture_output=True, text=True, check=True).stdout.strip()
    home = tmp_path_factory.mktemp("home")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(SETTINGS)}
    env = kept | {"HOME": str(home), "UV_CACHE_DIR": kept_wheels, "LJ_IMAGE_CACHE": str(cache_dir)}
    run([uv, "tool", "install", "--quiet", "--python", sys.executable, str(wheel)], home, env)
    build: dict[str, str] = {"network": "host"} | ({"ca_bundle": str(CA_BUNDLE)} if CA_BUNDLE.is_file() else {})
    (home / ".config/lj-image").mkdir(parents=True)
    (home / ".config/lj-image/config.yaml").write_text(json.dumps({"build": build}))
    (home / "project").mkdir()
    yield Installed(home / ".local/bin/lj-image", home / "project", env)
    shutil.rmtree(home)


@pytest.fixture
def name(scratch: Scratch, cache_dir: Path, remove_images: Callable[[str], None]) -> Iterator[str]:
    """Return the name of an image that is removed, with its records, after the test."""
    name = f"{scratch.prefix}-first"
    remove_images(name)
    yield name
    shutil.rmtree(cache_dir / "records" / name, ignore_errors=True)


def test_an_empty_folder_becomes_an_image_that_runs(
    scratch: Scratch, base_image: str, installed: Installed, name: str
) -> None:
    release = json.loads(installed.run("init", "--name", name, "--json"))["release"]
    installed.run("lint")
    assert f"{release}-open.txt: " in installed.run("lock", release)
    assert "FROM" in installed.run("render", release)
    assert f"{name}:{release}-open" in installed.run("build", release)
    code = "import httpx, rich, importlib.metadata as m; print(m.version('httpx'), m.version('rich'))"
    assert scratch.printed(f"{name}:{release}-open", ["python3", "-c", code]).strip() == "0.28.1 14.0.0"
    assert installed.run("build", release).rstrip().endswith("up to date")
    assert "verified: " in installed.run("verify", release)


def test_a_template_of_the_project_is_taken_in_place_of_ours(installed: Installed) -> None:
    release = next((installed.folder / "images").glob("*/releases/*.yaml")).stem
    own = installed.folder / "templates/components/pip.j2"
    own.parent.mkdir(parents=True)
    own.write_text("# a template of this project\n")
    try:
        assert "# a template of this project" in installed.run("render", release)
    finally:
        shutil.rmtree(installed.folder / "templates")
