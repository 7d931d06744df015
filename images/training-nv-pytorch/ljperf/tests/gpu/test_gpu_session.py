"""The script as a whole: with a stand-in for the training as if there were a GPU, and really, in its smallest form."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ljperf.benchmark.request import Request, target_of
from ljperf.cli.benchmark import command
from ljperf.gpu.cases import GRID, SMOKE_GAINS, SMOKE_GRID, Case, fitting, gains, largest
from ljperf.gpu.clock import Clock
from ljperf.gpu.machine import Machine
from ljperf.gpu.measure import Session

H200 = 150_754_820_096  # bytes, as the driver reports 143771 MiB
L4 = 23034 * 1024**2
SLEEPER = (sys.executable, str(Path(__file__).with_name("sleeper.py")))
SCRIPT = Path(__file__).parents[2] / "gpu" / "measure.sh"

ALL = (*GRID, *gains(H200), *SMOKE_GRID, *SMOKE_GAINS)


@pytest.mark.parametrize("case", ALL, ids=[case.name for case in ALL])
def test_each_trials_command_line_means_what_its_case_asks(case: Case) -> None:
    words = case.trial.command((), Path("x.json"))[1:]
    options = dict(command.make_context("benchmark", list(words)).params)
    framework, model = target_of(options.pop("target"))
    for place in ("nproc", "hostfile", "ray", "json_path", "html_path", "into", "compare"):
        options.pop(place)
    assert Request(framework=framework, model=model, **options) == case.request


def test_names_are_unique_since_each_is_a_file() -> None:
    assert len({case.name for case in ALL}) == len(ALL)


def test_the_largest_gpu_weighs_at_least_twelve_configurations_and_an_eight_billion_model() -> None:
    assert len(fitting(GRID, H200)) >= 12
    assert largest(H200) == "llama3-8b"


def test_a_small_gpu_gets_what_it_holds() -> None:
    assert fitting(GRID, L4) != GRID
    assert largest(L4) in (None, "llama3.2-1b")
    assert largest(10**9) is None


def session(folder: Path, limit_s: float, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setenv("SLEEPER_LOG", str(folder / "noted"))
    monkeypatch.setenv("SLEEPER_UNIT", "0.001")
    machine = Machine("NVIDIA H200", H200, None, None, "a CPU", 2, "Linux", {}, "2026-12-02")
    return Session(machine, folder / "out", Clock(limit_s), SLEEPER)


def test_as_if_on_a_gpu_every_part_runs_and_both_files_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = session(tmp_path, 3600, monkeypatch).run(tmp_path)
    assert found.whole
    assert len(found.errors) == len(GRID) + len(gains(H200))
    assert found.ablation is not None
    assert [step["runs"] for step in found.ablation["steps"]] == [3, 3, 3]
    assert json.loads((tmp_path / "out" / "results.json").read_text())["complete"] is True
    assert (tmp_path / "out" / "a-device.yaml").is_file()
    assert "reserved/allocated 1.05" in (tmp_path / "out" / "results.md").read_text()
    # The stand-in takes 4 bytes and knows one speed: what is promised is not met, and that is said.
    assert [verdict.met for verdict in found.verdicts] == [True, False, False, True, False, False]


def test_without_time_everything_is_left_out_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = session(tmp_path, 12, monkeypatch).run(tmp_path)
    assert not (tmp_path / "noted").exists()
    assert {one.failure for one in (*found.grid, *found.gains)} == {"left out: no time left"}
    assert [line.split(":")[0] for line in found.left_out] == ["ablation", "calibration"]
    assert json.loads((tmp_path / "out" / "results.json").read_text())["complete"] is False


def test_without_a_gpu_the_script_says_so(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "ljperf.gpu", "--out", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(SCRIPT.parents[1] / "src"), "CUDA_VISIBLE_DEVICES": ""}
    ended = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 1
    assert "PyTorch sees no GPU here" in ended.stderr
    assert "--smoke" in ended.stderr


@pytest.mark.slow
def test_the_smallest_form_runs_really_on_a_cpu(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHON": sys.executable, "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(
        [str(SCRIPT), "--smoke", "--out", str(tmp_path)],
        env=environment, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["complete"] is True
    assert all(one["result"]["tokens_per_second"] > 0 for one in (*results["grid"], *results["gains"]))
    assert results["ablation"]["steps"][1]["gain"]["value"] != 0
    assert "## Promises" in (tmp_path / "results.md").read_text()
    assert "step 1 of" in (tmp_path / "runs.log").read_text()
