"""What the machine and the image have: limits, variables that may be shown, hooks, and warnings with the way out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ljperf.environment.devices_here import Accelerator, device_files, rdma
from ljperf.environment.environment import Environment, environment
from ljperf.environment.hooks import Hooks, hooks
from ljperf.environment.limits import Limits, limits
from ljperf.environment.pins import Replaced, replaced
from ljperf.environment.variables import variables
from ljperf.environment.warnings import warnings

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
    found = limits(folder, tmp_path / "absent")
    assert (found.cores, found.memory_bytes, found.shared_bytes) == (1.0, 1 << 30, None)


@pytest.mark.parametrize(("quota", "memory"), [("max 100000", "max"), ("", "9223372036854771712")])
def test_without_a_limit_all_cores_count(tmp_path: Path, quota: str, memory: str) -> None:
    folder = written(tmp_path, cpu_DOT_max=quota, memory_DOT_max=memory)
    found = limits(folder, tmp_path / "absent")
    assert (found.cores, found.memory_bytes) == (float(len(os.sched_getaffinity(0))), None)


def test_only_variables_that_can_be_no_secret_are_shown() -> None:
    environ = {
        "NCCL_DEBUG": "INFO",
        "NCCL_AUTH_TOKEN": "x",
        "LJPERF_API_KEY": "x",
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


def test_the_user_of_an_address_is_not_shown() -> None:
    assert variables({"NCCL_CONF_FILE": "http://me:word@host/nccl.conf"}) == {
        "NCCL_CONF_FILE": "http://***@host/nccl.conf"
    }


def test_a_start_file_in_the_current_folder_is_no_hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = hooks({}).installed
    written(tmp_path, ljperf_DOT_pth="import ljperf.startup\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert hooks({}).installed == before


def machine(**changes: Any) -> Environment:
    """One in order, with a GPU."""
    found = Environment(
        system="Debian",
        versions={"torch": "2.5.1"},
        replaced=(),
        driver="550.54",
        device_files=1,
        accelerators=(Accelerator("NVIDIA H20", 96 << 30),),
        problem=None,
        communication=None,
        limits=ROOM,
        interfaces=("eth0", "eth1"),
        rdma=("mlx5_0",),
        hooks=NO_HOOKS,
        variables={},
    )
    return replace(found, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"variables": {"NCCL_SOCKET_IFNAME": "eth", "GLOO_SOCKET_IFNAME": "eth1"}},
        {"variables": {"NCCL_SOCKET_IFNAME": "^docker,lo"}},
        {"variables": {"NCCL_SOCKET_IFNAME": "=eth1:0"}},
        {"rdma": (), "limits": Limits(8.0, None, 64 << 30, 65536)},
        {"accelerators": (), "device_files": 0},
    ],
)
def test_a_machine_in_order_gets_no_warning(changes: dict[str, Any]) -> None:
    assert warnings(machine(**changes)) == ()


NO_GPU: dict[str, Any] = {"accelerators": (), "device_files": 0}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"limits": Limits(8.0, None, 64 << 20)}, "/dev/shm has 64 MiB: start the container with --ipc"),
        ({"limits": Limits(8.0, None, None, 8 << 20)}, "only 8 MiB can be locked"),
        ({"limits": Limits(1.0, None, None)}, "1 cores for 1 GPUs"),
        ({"replaced": (Replaced("torch", "2.5.1", "2.6.0"),)}, "torch 2.5.1 is not 2.6.0 as installed now"),
        ({"replaced": (Replaced("deepspeed", "0.16.3", None),)}, "deepspeed 0.16.3 is not installed any more"),
        ({"versions": {"torch": None}}, "PyTorch is not installed"),
        ({"accelerators": (), "problem": "OSError: libcudart.so.12"}, "PyTorch cannot be used: OSError: libcudart"),
        ({"accelerators": (), "device_files": 8}, "8 GPUs are here, but PyTorch uses none"),
        ({**NO_GPU, "variables": {"NVIDIA_VISIBLE_DEVICES": "all"}}, "no GPU answers"),
        ({"variables": {"CHECKPOINT_OPTIMIZATION": "true"}}, "the hooks are not installed"),
        (
            {"variables": {"CHECKPOINT_OPTIMIZATION_LAYERS": "3"}, "hooks": Hooks("x", False, {})},
            "without CHECKPOINT_OPTIMIZATION=true",
        ),
        ({"variables": {"NCCL_SOCKET_IFNAME": "bond"}}, "NCCL_SOCKET_IFNAME=bond names no interface"),
        ({"variables": {"NCCL_SOCKET_IFNAME": "=eth"}}, "names no interface"),
        ({"variables": {"GLOO_SOCKET_IFNAME": "eth"}}, "GLOO_SOCKET_IFNAME=eth names no interface"),
    ],
)
def test_what_will_hurt_later_is_told(changes: dict[str, Any], words: str) -> None:
    (said,) = warnings(machine(**changes))
    assert words in said


def test_replaced_parts_are_those_that_differ_from_the_images_constraints(tmp_path: Path) -> None:
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("# kept\nnumpy==1.26.4\ntorch==2.5.1+cu124  # the base's\ndeepspeed == 0.16.3\npeft>=0.1\n")
    there = {"numpy": "1.26.4", "torch": "2.6.0"}.get
    environ = {"PIP_CONSTRAINT": f"{tmp_path}/absent {constraints}"}
    assert replaced(environ, there) == (
        Replaced("torch", "2.5.1+cu124", "2.6.0"),
        Replaced("deepspeed", "0.16.3", None),
    )
    assert replaced({}, there) == ()


def test_gpus_of_the_container_and_rdma_devices_are_counted(tmp_path: Path) -> None:
    for name in ("nvidia0", "nvidia11", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    assert device_files(tmp_path) == 2
    assert rdma(tmp_path) == ("nvidia-uvm", "nvidia0", "nvidia11", "nvidiactl")
    assert rdma(tmp_path / "absent") == ()


def test_a_broken_pytorch_is_a_warning_and_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torch.py").write_text("raise OSError('libcudart.so.12: cannot open shared object file')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    found = environment({})
    assert any("PyTorch cannot be used: OSError: libcudart.so.12" in line for line in found.warnings)


def test_the_command_prints_a_table_and_json() -> None:
    environ = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src"), "API_TOKEN": "do-not-show"}
    run = [sys.executable, "-m", "ljperf", "env"]
    shown = subprocess.run(run, env=environ, capture_output=True, text=True, timeout=120, check=True)
    assert "torch" in shown.stdout
    found = json.loads(subprocess.check_output([*run, "--json"], env=environ, text=True, timeout=120))
    assert found["versions"]["transformers"] is not None
    assert found["limits"]["cores"] > 0
    assert "do-not-show" not in shown.stdout + json.dumps(found)
