"""Programs that may be installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable

import pytest


def program(name: str) -> Callable[..., str]:
    """Return a function that runs a program with words; a test that needs an absent one is skipped."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")

    def run(*words: str) -> str:
        env = {**os.environ, "LC_ALL": "C.UTF-8"}
        done = subprocess.run([path, *words], capture_output=True, text=True, check=False, env=env)
        assert done.returncode == 0, f"{name} {words}: {done.stderr}"
        return done.stdout

    return run
