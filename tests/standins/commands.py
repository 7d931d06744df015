"""The real command line, as a process of its own in a project of its own; everything that it says is kept."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROGRAM = Path(sys.executable).with_name("lj-image")
SMALL_BASE = Path(__file__).parents[2] / "src/lj_image/skeleton/images/base-os"
"""The base that `lj-image init` writes: without the compilers of the family's own, so made and loaded sooner."""
FOREIGN = ("LJ_IMAGE_", "UV_", "PIP_", "XDG_", "PYTHON", "PYTEST_")
"""Beginnings of variables that would let this machine's settings into a test."""


@dataclass
class Project:
    """A folder with `images/`, a config, a cache and a home that nobody else uses."""

    folder: Path
    env: dict[str, str] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    """Everything that any command has printed."""

    @classmethod
    def create(cls, folder: Path, *families: Path) -> Project:
        """Copy image folders, without their locks, into a new folder."""
        for family in families:
            shutil.copytree(
                family, folder / "images" / family.name, ignore=shutil.ignore_patterns("__pycache__", "locks")
            )
        (folder / "home").mkdir()
        return cls(folder)

    @property
    def cache(self) -> Path:
        """The cache of its own."""
        return self.folder / "cache"

    @property
    def config(self) -> Path:
        """The config file."""
        return self.folder / "config.yaml"

    def configure(self, values: Mapping[str, Any]) -> None:
        """Write the config; JSON is YAML."""
        self.config.write_text(json.dumps(values, indent=2))

    def environment(self) -> dict[str, str]:
        """Return what its commands see: the machine's variables without settings, and its own."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        return {
            **kept,
            "HOME": str(self.folder / "home"),
            "LJ_IMAGE_CONFIG": str(self.config),
            "LJ_IMAGE_CACHE": str(self.cache),
            "UV_CACHE_DIR": str(self.folder / "uv-cache"),
            "NO_PROXY": "127.0.0.1,localhost",
            **self.env,
        }

    def start(self, *arguments: str, **env: str) -> subprocess.Popen[str]:
        """Start a command; the caller ends it, and gives what it said to `hear`."""
        return subprocess.Popen(
            [str(PROGRAM), *arguments],
            cwd=self.folder,
            env=self.environment() | env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )

    def keep(self, tar_of_base: Path) -> None:
        """Put a root file system that exists already into the cache, so that no test makes it again."""
        target = self.cache / "bases" / tar_of_base.name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            target.hardlink_to(tar_of_base)
        except OSError:  # another file system
            shutil.copyfile(tar_of_base, target)

    def finish(self, process: subprocess.Popen[str], timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
        """Wait for a command and keep what it said."""
        try:
            out, err = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f"{process.args!r} does not end; so far:\n{out}\n{err}") from None
        self.said += [out, err]
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def attempt(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a command, whatever comes of it; a traceback is never an answer."""
        done = self.finish(self.start(*arguments, **env))
        assert "Traceback" not in done.stderr + done.stdout, done.stderr
        return done

    def run(self, *arguments: str, **env: str) -> str:
        """Run a command that must succeed, and return its result."""
        done = self.attempt(*arguments, **env)
        assert done.returncode == 0, f"{arguments}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def refuse(self, code: int, *arguments: str, **env: str) -> str:
        """Run a command that must end with an exit code, and return its message."""
        done = self.attempt(*arguments, **env)
        assert done.returncode == code, f"{arguments}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stderr
