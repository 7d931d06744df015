"""Promises against numbers made by hand."""

from __future__ import annotations

from ljperf.gpu.machine import Machine
from ljperf.gpu.report import Findings, document_of, markdown_of
from ljperf.gpu.trials import Ended, Trial
from ljperf.gpu.verdicts import Error, Verdict, verdicts

MACHINE = Machine(
    "NVIDIA H200", 150_754_820_096, "580.1", "12.4", "a CPU", 16, "Linux", {"torch": "2.5.1"}, "2026-12-02"
)


def ended(
    name: str, speed: float | None, *, recommended: bool = False, retries: int = 0, gpu: bool = True, failure: str = ""
) -> Ended:
    trial = Trial(name, "deepspeed/tiny", (), recommended)
    if speed is None:
        return Ended(trial, None, failure or "exit code 1: CUDA out of memory", 1.0)
    memory = {"allocated": 10**9 if gpu else None, "reserved": 2 * 10**9 if gpu else None, "retries": retries}
    return Ended(trial, {"tokens_per_second": speed, "memory": memory}, None, 1.0)


def met(found: tuple[Verdict, ...], word: str) -> bool | None:
    (one,) = [verdict for verdict in found if word in verdict.promise]
    return one.met


def errors(*percent: float) -> list[Error]:
    return [Error(f"c{index}", round(1000 * (1 + value / 100)), 1000) for index, value in enumerate(percent)]


def test_the_planner_is_judged_by_median_largest_and_count() -> None:
    good = verdicts(errors(*[1] * 7, *[-5] * 4, -8), [], {})
    assert (met(good, "at least 12"), met(good, "median"), met(good, "largest")) == (True, True, True)
    bad = verdicts(errors(1, 4, -4, 9), [], {})
    assert (met(bad, "at least 12"), met(bad, "median"), met(bad, "largest")) == (False, False, False)


def test_an_error_has_a_sign_more_predicted_is_positive() -> None:
    assert Error("a", 110, 100).relative == 0.1
    (largest,) = [verdict for verdict in verdicts(errors(2, -9), [], {}) if "largest" in verdict.promise]
    assert largest.found == "-9.0% (c1)"


def test_a_recommended_one_out_of_memory_breaks_the_promise() -> None:
    fits = ended("a", 5, recommended=True)
    assert met(verdicts([], [fits, ended("b", None)], {}), "no recommended") is True
    assert met(verdicts([], [fits, ended("b", None, recommended=True)], {}), "no recommended") is False


def test_an_allocator_that_had_to_ask_again_did_not_fit() -> None:
    assert met(verdicts([], [ended("a", 5, recommended=True, retries=1)], {}), "no recommended") is False


def test_a_recommended_one_without_time_decides_nothing() -> None:
    skipped = ended("a", None, recommended=True, failure="left out: no time left")
    assert met(verdicts([], [skipped], {}), "no recommended") is None


def test_gains_are_judged_against_full_recomputation_and_against_the_same_without_compiling() -> None:
    gains = {"1b-full": ended("1b-full", 100), "1b-auto": ended("1b-auto", 121)}
    gains |= {"largest-full": ended("l", 100), "largest-compiled": ended("l", 119), "largest-auto": ended("l", 105)}
    found = verdicts([], [], gains)
    assert met(found, "recompute:") is True
    assert met(found, "compile:") is False
    (recompute,) = [verdict for verdict in found if "recompute:" in verdict.promise]
    assert recompute.found == "1b-auto +21.0%; largest-auto +5.0%"


def test_a_gain_needs_both_runs() -> None:
    gains = {"1b-full": ended("1b-full", None), "1b-auto": ended("1b-auto", 121)}
    assert met(verdicts([], [], gains), "recompute:") is None


def test_a_cpu_proves_nothing_about_a_gpu() -> None:
    gains = {"tiny-full": ended("f", 100, gpu=False), "tiny-auto": ended("a", 300, gpu=False)}
    assert {verdict.met for verdict in verdicts([], [], gains)} == {None}


def findings(**more: object) -> Findings:
    plain: dict[str, object] = {
        "machine": MACHINE, "limit_s": 570.0, "spent_s": 400.0, "grid": (ended("a|b", 5),),
        "errors": tuple(errors(2)), "gains": (), "ablation": {"complete": True}, "ablation_text": "base 3 of 3",
        "verdicts": (Verdict("a promise", "found", None),), "left_out": (),
    }  # fmt: skip
    return Findings(**{**plain, **more})  # type: ignore[arg-type]


def test_the_report_names_the_machine_and_every_number() -> None:
    text = markdown_of(findings())
    for part in ("NVIDIA H200, 2026-12-02", "140.4 GiB", "driver 580.1, CUDA 12.4", "torch 2.5.1", "cannot tell"):
        assert part in text
    assert "| a\\|b | 5 | 1.00 | 2.00 | 1 |" in text
    assert "All that was meant to run has run." in text


def test_what_was_left_out_makes_it_incomplete_in_both_forms() -> None:
    found = findings(left_out=("ablation: no time",))
    assert document_of(found)["complete"] is False
    assert "- ablation: no time" in markdown_of(found)
    assert document_of(findings(grid=(ended("a", None),)))["complete"] is False
