"""Several ranks on this machine's CPUs, for tests: torchrun, and none outlives its test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "src"
TESTS = Path(__file__).resolve().parent
GRACE_S = 35  # torchrun waits 30 s for ranks that ignore SIGTERM


def run_ranks(
    script_or_module: str | Path,
    world_size: int = 2,
    *arguments: str,
    env: Mapping[str, str] | None = None,
    timeout_s: float = 120,
    check: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run a Python file (its path ends in .py) or module on that many ranks; its stdout and stderr come back.

    Raises AssertionError with both if the run fails and `check` holds, or if it takes longer than `timeout_s`.
    """
    program = str(script_or_module)
    target = [program] if program.endswith(".py") else ["-m", program]
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={world_size}"]
    return run_alone([*launcher, *target, *arguments], env=env, timeout_s=timeout_s, check=check)


def run_alone(
    command: Sequence[str], *, env: Mapping[str, str] | None = None, timeout_s: float = 120, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run one command as `run_ranks` runs its launcher."""
    child = subprocess.Popen(
        command,
        env=environment(env or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = child.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        end(child)
        out, err = child.communicate()
        raise AssertionError(f"not ended after {timeout_s} s:\n{out[-4000:]}\n{err[-4000:]}") from None
    except BaseException:
        end(child)
        raise
    assert not check or child.returncode == 0, f"exit code {child.returncode}:\n{out[-4000:]}\n{err[-8000:]}"
    return subprocess.CompletedProcess(list(command), child.returncode, out, err)


def end(child: subprocess.Popen[str]) -> None:
    """Let torchrun end its ranks, which are in sessions of their own; if it does not, end it alone."""
    child.terminate()
    try:
        child.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)


def environment(changes: Mapping[str, str]) -> dict[str, str]:
    """This process's environment for a rank: one thread, no accelerator, sources and tests on the path."""
    kept = {key: value for key, value in os.environ.items() if key not in RANK_VARIABLES}
    path = os.pathsep.join([str(SOURCES), str(TESTS), *filter(None, [kept.get("PYTHONPATH")])])
    return kept | {"DS_ACCELERATOR": "cpu", "OMP_NUM_THREADS": "1", "PYTHONPATH": path} | dict(changes)


RANK_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""Of another launcher above us: they would make a rank join a group that is not ours."""
