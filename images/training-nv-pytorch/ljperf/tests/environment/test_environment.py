"""What the machine and the image have: limits, variables that may be shown, hooks, and warnings with the way out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ljperf.environment.environment import pinned_torch, warnings
from ljperf.environment.hooks import Hooks, hooks
from ljperf.environment.limits import Limits, limits
from ljperf.environment.variables import variables

NO_HOOKS = Hooks(None, False, {})
ROOM = Limits(8.0, None, 64 << 30)


def written(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_limits_of_the_newer_control_groups(tmp_path: Path) -> None:
    folder = written(tmp_path, cpu_DOT_max="50000 100000\n", memory_DOT_max="2147483648\n")
    found = limits(folder, tmp_path)
    assert (found.cores, found.memory_bytes) == (0.5, 2 << 30)
    assert found.shared_bytes == os.statvfs(tmp_path).f_blocks * os.statvfs(tmp_path).f_frsize


def test_limits_of_the_older_control_groups(tmp_path: Path) -> None:
    folder = written(
        tmp_path,
        cpu__cpu_DOT_cfs_quota_us="100000",
        cpu__cpu_DOT_cfs_period_us="100000",
        memory__memory_DOT_limit_in_bytes="1073741824",
    )
    assert limits(folder, tmp_path / "absent") == Limits(1.0, 1 << 30, None)


@pytest.mark.parametrize(("quota", "memory"), [("max 100000", "max"), ("", "9223372036854771712")])
def test_without_a_limit_all_cores_count(tmp_path: Path, quota: str, memory: str) -> None:
    folder = written(tmp_path, cpu_DOT_max=quota, memory_DOT_max=memory)
    assert limits(folder, tmp_path / "absent") == Limits(float(len(os.sched_getaffinity(0))), None, None)


def test_only_variables_that_can_be_no_secret_are_shown() -> None:
    environ = {
        "NCCL_DEBUG": "INFO",
        "NCCL_AUTH_TOKEN": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "HOME": "/root",
        "CHECKPOINT_OPTIMIZATION": "true",
        "OMP_NUM_THREADS": "1",
    }
    assert variables(environ) == {"CHECKPOINT_OPTIMIZATION": "true", "NCCL_DEBUG": "INFO", "OMP_NUM_THREADS": "1"}


def test_the_hook_is_found_where_python_looks(tmp_path: Path) -> None:
    assert hooks({}, [str(tmp_path)]).installed is None
    written(tmp_path, ljperf_DOT_pth="import ljperf.startup\n", ljperf_DOT_start="ljperf.startup:install\n")
    found = hooks({"CHECKPOINT_OPTIMIZATION": "true"}, [str(tmp_path)])
    assert found.installed is not None
    assert "transformers.modeling_utils" in found.awaited


def test_a_machine_in_order_gets_no_warning() -> None:
    assert list(warnings({"torch": "2.5.1"}, NO_HOOKS, ROOM, {}, "2.5.1", has_gpu=False)) == []


@pytest.mark.parametrize(
    ("found", "allowed", "environ", "words"),
    [
        ({"torch": "2.5.1"}, Limits(8.0, None, 64 << 20), {}, "/dev/shm has 64 MiB: start the container with --ipc"),
        ({"torch": "2.6.0"}, ROOM, {}, "torch 2.6.0 is not the image's own, 2.5.1"),
        ({"torch": None}, ROOM, {}, "PyTorch is not installed"),
        ({"torch": "2.5.1"}, ROOM, {"NVIDIA_VISIBLE_DEVICES": "all"}, "no GPU answers"),
        ({"torch": "2.5.1"}, ROOM, {"CHECKPOINT_OPTIMIZATION": "true"}, "the hooks are not installed"),
    ],
)
def test_what_will_hurt_later_is_told(
    found: dict[str, str | None], allowed: Limits, environ: dict[str, str], words: str
) -> None:
    (said,) = warnings(found, NO_HOOKS, allowed, environ, "2.5.1", has_gpu=False)
    assert words in said


def test_the_images_torch_is_read_from_its_constraints(tmp_path: Path) -> None:
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("# kept\nnumpy==1.26.4\ntorch==2.5.1  # the base's\n")
    assert pinned_torch({"PIP_CONSTRAINT": f"{tmp_path}/absent {constraints}"}) == "2.5.1"
    assert pinned_torch({}) is None


def test_the_command_prints_a_table_and_json() -> None:
    environ = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src"), "API_TOKEN": "do-not-show"}
    run = [sys.executable, "-m", "ljperf", "env"]
    shown = subprocess.run(run, env=environ, capture_output=True, text=True, timeout=120, check=True)
    assert "torch" in shown.stdout
    found = json.loads(subprocess.check_output([*run, "--json"], env=environ, text=True, timeout=120))
    assert found["versions"]["transformers"] is not None
    assert found["limits"]["cores"] > 0
    assert "do-not-show" not in shown.stdout + json.dumps(found)
