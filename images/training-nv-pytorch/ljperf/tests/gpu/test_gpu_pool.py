"""Trials beside each other, and within their time."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from ljperf.gpu.clock import RESERVE_S, Clock
from ljperf.gpu.pool import CONTEXT_BYTES, Pool
from ljperf.gpu.trials import Trial

PROGRAM = (sys.executable, str(Path(__file__).with_name("sleeper.py")))
GIB = 1024**3


def trial(name: str, tenths: int = 3, gib: int = 1, *, sequence: int = 8, recommended: bool = False) -> Trial:
    return Trial(name, "ddp/tiny", ("--steps", str(tenths), "--sequence", str(sequence)), recommended, gib * GIB)


@pytest.fixture
def noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SLEEPER_LOG", str(tmp_path / "noted"))
    return tmp_path / "noted"


def together(noted: Path) -> int:
    """How many ran at one time, at most."""
    running = most = 0
    for line in noted.read_text().splitlines():
        running += 1 if line.startswith("+") else -1
        most = max(most, running)
    return most


def pool(folder: Path, capacity_gib: int | None, at_once: int = 4, expected_s: float = 0.5) -> Pool:
    capacity = None if capacity_gib is None else capacity_gib * GIB
    return Pool(folder, PROGRAM, capacity, at_once, expected_s)


def test_trials_run_beside_each_other_as_far_as_memory_lets(tmp_path: Path, noted: Path) -> None:
    context = CONTEXT_BYTES // GIB
    trials = [trial(name, 10) for name in "abcd"]
    ended = pool(tmp_path, 2 * (context + 2)).run(trials, Clock(60).share(1, 1))
    assert together(noted) == 2
    assert sorted(one.trial.name for one in ended) == ["a", "b", "c", "d"]
    assert all(one.speed == 50 and one.allocated == 4 for one in ended)


def test_without_a_device_one_runs_at_a_time(tmp_path: Path, noted: Path) -> None:
    pool(tmp_path, None).run([trial("a"), trial("b")], Clock(60).share(1, 1))
    assert together(noted) == 1


def test_a_recommended_trial_runs_alone_since_it_asks_what_is_free(tmp_path: Path, noted: Path) -> None:
    trials = [trial("a"), trial("b", recommended=True), trial("c")]
    pool(tmp_path, 1000).run(trials, Clock(60).share(1, 1))
    assert together(noted) == 1


def test_one_that_fails_says_out_of_memory_and_the_next_runs(tmp_path: Path, noted: Path) -> None:
    bad, good = pool(tmp_path, None).run([trial("a", sequence=13), trial("b")], Clock(60).share(1, 1))
    assert bad.result is None
    assert bad.failure is not None
    assert bad.failure.startswith("exit code 1: torch.OutOfMemoryError: CUDA out of memory")
    assert good.speed == 50


def test_what_does_not_fit_in_the_time_is_left_out_and_said(tmp_path: Path, noted: Path) -> None:
    ended = pool(tmp_path, None, expected_s=2).run([trial("a", 25), trial("b")], Clock(RESERVE_S + 4).share(1, 1))
    assert [one.failure for one in ended] == [None, "left out: no time left"]
    assert "+b" not in noted.read_text()


def test_a_trial_ends_with_its_parts_time(tmp_path: Path, noted: Path) -> None:
    (ended,) = pool(tmp_path, None).run([trial("a", 600)], Clock(RESERVE_S + 1.5).share(1, 1))
    assert ended.result is None
    assert ended.failure == "left out: ended, no time left"
    assert ended.wall_s < 20
    assert "-a" not in noted.read_text()


def test_a_part_that_needs_less_leaves_the_rest_to_the_next() -> None:
    now = [0.0]
    clock = Clock(100 + RESERVE_S, now=lambda: now[0])
    assert clock.share(3, 10).left_s == pytest.approx(30)
    now[0] = 10
    assert clock.share(4, 7).left_s == pytest.approx(90 * 4 / 7)
    now[0] = 99
    assert not clock.share(3, 3).fits(2)
    now[0] = 500
    assert clock.share(3, 3).left_s == 0
