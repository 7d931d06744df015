"""`ljperf plan` as a user calls it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from ljperf.cli.plan import command
from ljperf.errors import UsageError


@pytest.fixture(autouse=True)
def no_calibration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LJPERF_CALIBRATION", str(tmp_path / "calibration"))


def plan(*options: str) -> Result:
    return CliRunner().invoke(command, options, standalone_mode=False)


def test_llama3_70b_on_64_ranks_is_planned_in_3_s_and_1_gib_without_pytorch() -> None:
    program = (
        "import resource, sys; from ljperf.cli import main\n"
        "sys.argv = ['ljperf', 'plan', '--model', 'llama3-70b', '--world-size', '64', '--sequence', '4096',"
        " '--device', 'h20-96g', '--json']\n"
        "try: main()\n"
        "finally: print('torch' in sys.modules, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    before = time.monotonic()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert time.monotonic() - before < 3
    torch, kilobytes = done.stderr.split()
    assert torch == "False"
    assert 1024 < int(kilobytes) < 1024 * 1024
    answer = json.loads(done.stdout)
    assert answer["fits"]
    assert 0 < answer["recompute_layers"] < 80
    assert max(phase["bytes"] for phase in answer["phases"]) == answer["bytes"]["tensors"]


def test_a_plan_says_where_its_constants_are_from_and_that_time_is_modelled() -> None:
    result = plan("--model", "llama3-8b", "--world-size", "8", "--device", "h20-96g", "--explain")
    assert result.return_value == 0
    assert "nothing was measured" in result.output
    assert "modelled, not measured" in result.output
    assert "L logits" in result.output


def test_what_does_not_fit_is_exit_code_1_with_remedies() -> None:
    result = plan(
        *("--model", "llama3-8b", "--world-size", "8", "--micro-batch", "16", "--sequence", "8192"),
        *("--device", "h20-96g"),
    )
    assert result.return_value == 1
    assert "does not fit" in result.output
    assert "instead: --loss chunked" in result.output


def test_none_and_full_are_numbers_of_layers() -> None:
    answers = [
        json.loads(plan("--model", "fsdp/tiny", "--device", "l4", "--recompute", word, "--json").output)
        for word in ("none", "full", "2")
    ]
    assert [answer["recompute_layers"] for answer in answers] == [0, 4, 2]
    assert {answer["setup"]["framework"] for answer in answers} == {"fsdp"}


def test_a_sweep_is_a_table_of_all_combinations() -> None:
    result = plan("--model", "llama3-8b", "--device", "h20-96g", "--sweep", "micro_batch=1,2", "sequence=1024,2048")
    assert len([line for line in result.output.splitlines() if " of 32" in line]) == 4


def test_a_deepspeed_config_decides_stage_and_sizes(tmp_path: Path) -> None:
    path = tmp_path / "ds.json"
    zero = {"stage": 2, "overlap_comm": True, "offload_optimizer": {"device": "cpu"}}
    path.write_text(json.dumps({"train_micro_batch_size_per_gpu": 3, "zero_optimization": zero}))
    setup = json.loads(plan("--model", "tiny", "--device", "l4", "--ds-config", str(path), "--json").output)["setup"]
    assert (setup["zero_stage"], setup["micro_batch"], setup["overlap_comm"]) == (2, 3, True)
    assert setup["optimizer_offload"]
    assert setup["reduce_bucket"] == 500_000_000  # DeepSpeed's own default


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--model", "lama3-8b", "--device", "l4"), "lama3-8b"),
        (("--model", "tiny", "--device", "l44"), "l44"),
        (("--model", "torch/tiny", "--device", "l4"), "torch"),
        (("--model", "tiny", "--device", "l4", "--sequence", "4096"), "512 positions"),
        (("--model", "tiny", "--device", "l4", "--recompute", "5"), "4 layers"),
        (("--model", "tiny", "--device", "l4", "--micro-batch", "0"), "micro-batch"),
        (("--model", "fsdp/tiny", "--device", "l4", "--zero", "2"), "DeepSpeed"),
    ],
)
def test_what_cannot_be_is_a_usage_error_that_names_it(options: tuple[str, ...], said: str) -> None:
    error = plan(*options).exception
    assert isinstance(error, UsageError)
    assert said in error.message


def test_without_a_device_and_a_gpu_one_must_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ljperf.devices.found", lambda: None)
    error = plan("--model", "tiny").exception
    assert getattr(error, "exit_code", None) == 1
    assert "--device" in (getattr(error, "hint", None) or "")
