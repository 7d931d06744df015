"""`ljperf comm` as it is called: two ranks over gloo, started by it or by torchrun."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from ranks import run_alone, run_ranks

pytest.importorskip("torch")
HERE = [sys.executable, "-m", "ljperf", "comm"]


@pytest.mark.slow
def test_every_operation_is_measured_checked_and_kept(tmp_path: Path) -> None:
    out = tmp_path / "comm.json"
    options = ["--op", "all", "--sizes", "1K..4K", "--nproc", "2", "--dtype", "bfloat16", "--json", str(out)]
    said = run_alone([*HERE, *options, "--iters", "3"]).stdout
    assert said.count("busbw") == 3
    assert "2 ranks on 1 machine, gloo of PyTorch" in said
    found = json.loads(out.read_text())
    assert (found["complete"], found["ranks"], found["library"]["name"]) == (True, 2, "gloo")
    shown = [(row["operation"], row["size"], row["count"], row["wrong"]) for row in found["rows"]]
    whole = [("all-reduce", size, size // 2, 0) for size in (1024, 2048, 4096)]
    halves = [(name, size, size // 4, 0) for name in ("all-gather", "reduce-scatter") for size in (1024, 2048, 4096)]
    assert shown == [*whole, *halves]
    for row in found["rows"]:
        factor = 1.0 if row["operation"] == "all-reduce" else 0.5
        assert row["algbw"] == pytest.approx(row["size"] / row["microseconds"] / 1000)
        assert row["busbw"] == pytest.approx(row["algbw"] * factor)


@pytest.mark.slow
def test_under_torchrun_it_joins_and_a_wrong_result_is_exit_code_1(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    # Rank 1 adds to what it gets, as a broken library might.
    program.write_text(
        "import os, sys, torch.distributed as dist\n"
        "from ljperf.cli import main\n"
        "real = dist.all_reduce\n"
        "def broken(tensor, *a, **k):\n"
        "    result = real(tensor, *a, **k)\n"
        "    if os.environ['RANK'] == '1' and tensor.numel() > 1: tensor[7] += 1\n"
        "    return result\n"
        "dist.all_reduce = broken\n"
        "sys.argv = ['ljperf', 'comm', '--sizes', '1K', '--iters', '3']\n"
        "main()\n"
    )
    done = run_ranks(program, 2, check=False)
    assert done.returncode != 0
    (row,) = [line.split() for line in done.stdout.splitlines() if line.strip().startswith("1024")]
    assert row[-1] == "1"
    assert "1 elements are wrong" in done.stdout


@pytest.mark.slow
def test_a_rank_that_dies_leaves_what_was_measured(tmp_path: Path) -> None:
    out, program = tmp_path / "comm.json", tmp_path / "program.py"
    program.write_text(
        "import os, sys\n"
        "from ljperf.comm import sweep\n"
        "from ljperf.cli import main\n"
        "real = sweep._measure\n"
        "def measure(operation, size, plan):\n"
        "    if size == 2048 and os.environ['RANK'] == '1': os.kill(os.getpid(), 9)\n"
        "    return real(operation, size, plan)\n"
        "sweep._measure = measure\n"
        f"sys.argv = ['ljperf', 'comm', '--sizes', '1K..4K', '--iters', '3', '--json', {str(out)!r}]\n"
        "main()\n"
    )
    done = run_ranks(program, 2, check=False)
    assert done.returncode != 0
    found = json.loads(out.read_text())
    assert (found["complete"], [row["size"] for row in found["rows"]]) == (False, [1024])


@pytest.mark.parametrize(("operation", "code"), [("all", 0), ("reduce-scatter", 1)])
def test_a_collective_that_the_backend_lacks_ends_only_a_run_that_asked_for_it_alone(
    tmp_path: Path, operation: str, code: int
) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, torch.distributed as dist\n"
        "from ljperf.cli import main\n"
        "def lacking(*a, **k): raise RuntimeError('ProcessGroupGloo does not support reduce_scatter')\n"
        "dist.reduce_scatter_tensor = dist.reduce_scatter_single = lacking\n"
        f"sys.argv = ['ljperf', 'comm', '--op', {operation!r}, '--sizes', '1K', '--iters', '3']\n"
        "main()\n"
    )
    alone = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    done = run_alone([sys.executable, str(program)], env=alone, check=False)
    assert done.returncode == code, done.stderr
    assert "does not support reduce_scatter" in (done.stdout if code == 0 else done.stderr)
    assert len([line for line in done.stdout.splitlines() if "float32" in line]) == (2 if code == 0 else 0)


def run(*options: str, **env: str) -> Any:
    return run_alone([*HERE, *options], env=env, check=False)


def test_nccl_without_a_gpu_is_said_once() -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    done = run("--backend", "nccl", "--nproc", "2")
    assert done.returncode == 1
    assert done.stderr.count("nccl needs a GPU for each rank") == 1
    assert "--backend gloo" in done.stderr


def test_no_size_is_a_usage_error() -> None:
    assert run("--sizes", "4K..1K").returncode == 2


def test_nproc_under_a_launcher_is_a_usage_error() -> None:
    done = run("--nproc", "2", RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
    assert (done.returncode, "leave --nproc out" in done.stderr) == (2, True)
