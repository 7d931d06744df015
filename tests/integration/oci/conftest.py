"""skopeo, where it is installed: a tool that shares no code with us."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable

import pytest


@pytest.fixture
def skopeo() -> Callable[..., str]:
    """Return a function that runs skopeo with words, and returns what it prints."""
    program = shutil.which("skopeo")
    if program is None:
        pytest.skip("skopeo is not installed: apt-get install skopeo")

    def run(*words: str) -> str:
        done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
