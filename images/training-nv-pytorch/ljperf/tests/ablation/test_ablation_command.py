"""The command from end to end, with a stand-in for the training."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from ljperf.ablation.report import gain_text
from ljperf.ablation.statistics import Estimate

PROGRAM = f"{sys.executable} {Path(__file__).with_name('stand_in.py')}"
SPEEDS = {"": 100, "--compile": 120, "--recompute auto": 150}


class Bench:
    """A folder, the stand-in's table, and the command."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls = folder / "calls"

    def environment(self, **more: str) -> dict[str, str]:
        return {
            **os.environ,
            "STAND_IN_SPEEDS": json.dumps(SPEEDS),
            "STAND_IN_CALLS": str(self.calls),
            "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
            **more,
        }

    def command(self, *words: str) -> list[str]:
        start = [sys.executable, "-m", "ljperf", "ablation", "--model", "deepspeed/tiny", "--program", PROGRAM]
        steps = () if "--steps" in words else ("--steps", "base,compile,checkpoint")
        return [*start, "--folder", str(self.folder / "runs"), *steps, *words]

    def run(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words), env=self.environment(**more), capture_output=True, text=True, timeout=60, check=False
        )

    def called(self) -> list[str]:
        return self.calls.read_text().splitlines() if self.calls.exists() else []


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def steps_in(path: Path) -> dict[str, dict[str, Any]]:
    return {step["step"]: step for step in json.loads(path.read_text())["steps"]}


def test_contributions_are_those_of_the_stand_ins_speeds(bench: Bench, tmp_path: Path) -> None:
    ended = bench.run("--repeats", "3", "--json", str(tmp_path / "a.json"), "--html", str(tmp_path / "a.html"))
    assert ended.returncode == 0, ended.stderr
    steps = steps_in(tmp_path / "a.json")
    assert steps["compile"]["gain"]["value"] == pytest.approx(0.20, abs=0.002)
    assert steps["checkpoint"]["gain"]["value"] == pytest.approx(0.25, abs=0.002)
    assert steps["checkpoint"]["total_gain"]["value"] == pytest.approx(0.50, abs=0.002)
    assert steps["checkpoint"]["gain"]["low"] > 0.24
    assert "+25.0 %" in ended.stdout
    page = (tmp_path / "a.html").read_text()
    assert page.count("<rect") == 3
    assert page.count('class="whisker"') == 3
    assert "src=" not in page


def test_rounds_take_turns_and_each_starts_one_step_later(bench: Bench) -> None:
    bench.run("--repeats", "3", "--", "--micro-batch", "2")
    kinds = ["c" if "auto" in line else "b" if "--compile" in line else "a" for line in bench.called()]
    assert "".join(kinds) == "abcbcacab"
    assert all("--micro-batch 2" in line for line in bench.called())


def test_a_second_call_runs_only_what_is_missing(bench: Bench) -> None:
    bench.run("--repeats", "2")
    (bench.folder / "runs" / "compile-2.json").unlink()
    again = bench.run("--repeats", "3")
    assert again.returncode == 0
    assert len(bench.called()) == 6 + 1 + 3
    assert again.stderr.count("(kept from before)") == 5


def test_other_settings_do_not_mix_with_a_folders_runs(bench: Bench) -> None:
    bench.run("--repeats", "1")
    refused = bench.run("--repeats", "1", "--", "--sequence", "64")
    assert refused.returncode == 2
    assert "other settings (options)" in refused.stderr
    assert "--fresh" in refused.stderr
    assert bench.run("--repeats", "1", "--fresh", "--", "--sequence", "64").returncode == 0
    assert len(bench.called()) == 6


def test_a_step_that_fails_is_marked_and_given_up_while_the_others_go_on(bench: Bench, tmp_path: Path) -> None:
    ended = bench.run("--repeats", "4", "--json", str(tmp_path / "a.json"), STAND_IN_FAIL="--recompute full --compile")
    assert ended.returncode == 3
    steps = steps_in(tmp_path / "a.json")
    assert (steps["base"]["runs"], steps["compile"]["runs"], steps["checkpoint"]["runs"]) == (4, 0, 4)
    assert steps["checkpoint"]["over"] == "base"
    assert "out of memory" in steps["compile"]["failures"][0]
    assert sum("full --compile" in line for line in bench.called()) == 2
    assert "compile failed: exit code 1: RuntimeError: out of memory" in ended.stdout
    assert json.loads((tmp_path / "a.json").read_text())["complete"] is False


def test_a_later_call_tries_a_failed_step_again(bench: Bench) -> None:
    assert bench.run("--repeats", "1", STAND_IN_FAIL="--recompute auto").returncode == 3
    assert bench.run("--repeats", "1").returncode == 0
    assert len(bench.called()) == 4


def test_nothing_but_failures_is_exit_code_one(bench: Bench) -> None:
    assert bench.run("--repeats", "1", STAND_IN_FAIL="benchmark").returncode == 1


def test_a_partial_result_counts_as_a_failure(bench: Bench) -> None:
    ended = bench.run("--repeats", "1", "--", "--partial")
    assert ended.returncode == 1
    assert "no complete result" in ended.stdout


def test_a_run_that_hangs_is_ended_after_its_time(bench: Bench) -> None:
    ended = bench.run("--repeats", "1", "--timeout", "2", STAND_IN_HANG="--recompute auto")
    assert ended.returncode == 3
    assert "ended after 2 s, its time" in ended.stdout


def test_an_interruption_keeps_the_runs_ends_the_child_and_says_130(bench: Bench, tmp_path: Path) -> None:
    command = bench.command("--repeats", "2", "--json", str(tmp_path / "a.json"))
    child = subprocess.Popen(command, env=bench.environment(STAND_IN_HANG="--recompute auto"), stdout=subprocess.PIPE)
    while len(bench.called()) < 3:
        assert child.poll() is None
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=30)
    assert child.returncode == 130
    assert b"1 of 2" in out
    assert steps_in(tmp_path / "a.json")["compile"]["runs"] == 1
    assert not still_running(str(bench.folder / "runs"))
    assert bench.run("--repeats", "2").returncode == 0
    assert len(bench.called()) == 3 + 4


def still_running(mark: str) -> bool:
    """Does any process have this text in its command line? (Of Linux only, as the image.)"""
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in place.read_bytes():
                return True
        except OSError:
            continue
    return False


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--steps", "base,compil"), "did you mean compile?"),
        (("--image", "baseos"), "an image is STEP=REFERENCE"),
        (("--env", "NCCL_ALGO=Ring"), "a variable is STEP:NAME=VALUE"),
        (("--steps", "baseos"), "none of these steps can run here"),
        (("--", "--recompute=none"), "--recompute is set by the ablation itself"),
    ],
)
def test_wrong_input_is_exit_code_two_with_a_way_out(bench: Bench, words: tuple[str, ...], said: str) -> None:
    refused = bench.run(*words)
    assert refused.returncode == 2
    assert said in refused.stderr
    assert not bench.called()


def test_one_repeat_gives_no_interval_and_says_so(bench: Bench) -> None:
    ended = bench.run("--repeats", "1")
    assert "…" not in ended.stdout
    assert "give --repeats 5" in ended.stdout


def test_a_gain_that_may_be_chance_is_called_so(bench: Bench) -> None:
    # A speed between 99.99 and 100.09 in both steps: the stand-in adds a hundredth per call.
    ended = bench.run("--repeats", "3", "--steps", "base,compile", STAND_IN_SPEEDS='{"": 100, "--compile": 100}')
    assert "compile: no difference to base is shown" in ended.stdout


def test_a_bound_without_meaning_is_not_printed_in_all_its_digits() -> None:
    assert gain_text(Estimate(1.6, -1.0, 366925.0)) == "+160.0 % (-100.0 … > +1000)"
    assert gain_text(Estimate(0.204)) == "+20.4 %"
