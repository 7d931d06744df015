"""The smallest number of first layers that fits, and what is said where none does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ljperf.devices import Device, device_named
from ljperf.errors import UsageError
from ljperf.memory.calibration import Calibration
from ljperf.memory.drawing import bars
from ljperf.memory.phases import Peak, Phase, peak_of, saved_before, simulate, step_of
from ljperf.memory.recommend import recommend
from ljperf.memory.step_time import step_time
from ljperf.memory.sweep import axes_of, sweep
from ljperf.models.catalog import model_named
from ljperf.models.limits import SequenceTooLongError
from ljperf.setup import TrainingSetup

SHAPE = model_named("llama3-8b")
SETUP = TrainingSetup(world_size=8, sequence=4096)
BARE = Calibration("any", 1.0, 0, 0.0, measured=True, source="a test: nothing but tensors")


def device(memory_bytes: int) -> Device:
    return Device("made up", memory_bytes, {"bf16": 1e15})


@settings(max_examples=12, deadline=None)
@given(st.integers(20, 120), st.sampled_from([1, 2, 4]))
def test_the_recommendation_is_the_smallest_number_that_fits(gigabytes: int, batch: int) -> None:
    setup = replace(SETUP, micro_batch=batch)
    limit = gigabytes * 10**9
    fitting = [k for k in (0, 1, 7, 15, 22, 31, 32) if peak_of(SHAPE, setup.recomputing(k)).bytes <= limit]
    answer = recommend(SHAPE, setup, device(limit), headroom=0, calibration=BARE)
    assert answer.fits or not fitting
    if fitting:
        assert answer.k <= min(fitting)
    if answer.fits and answer.k:
        assert peak_of(SHAPE, setup.recomputing(answer.k)).bytes <= limit
        assert peak_of(SHAPE, setup.recomputing(answer.k - 1)).bytes > limit


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 31), st.integers(0, 32), st.booleans(), st.booleans())
def test_more_recomputed_layers_never_keep_more(k: int, before: int, zero_init: bool, compiled: bool) -> None:
    step = step_of(SHAPE, replace(SETUP, zero_init=zero_init, compiled=compiled))
    assert saved_before(step, k + 1, before) <= saved_before(step, k, before)
    assert simulate(step, k + 1).bytes <= simulate(step, k).bytes


def test_nothing_recomputes_where_there_is_room() -> None:
    answer = recommend(SHAPE, SETUP, device(10**12))
    assert (answer.k, answer.fits, answer.sure) == (0, True, True)
    assert "nothing needs to recompute" in answer.why


def test_logits_that_set_the_floor_are_named_with_what_helps() -> None:
    answer = recommend(SHAPE, replace(SETUP, micro_batch=16, sequence=8192), device_named("h20-96g"))
    assert not answer.fits
    assert "logits" in answer.why
    assert "cannot lower" in answer.why
    assert any("chunked" in remedy for remedy in answer.remedies)
    assert any(remedy.startswith("--micro-batch") for remedy in answer.remedies)


def test_a_remedy_that_is_named_does_fit() -> None:
    setup = replace(SETUP, micro_batch=8, sequence=8192)
    answer = recommend(SHAPE, setup, device_named("h20-96g"))
    assert not answer.fits
    assert any(remedy.startswith("--loss chunked (or liger) fits") for remedy in answer.remedies)
    assert recommend(SHAPE, replace(setup, loss="chunked"), device_named("h20-96g")).fits


def test_a_given_number_is_judged_and_not_changed() -> None:
    answer = recommend(SHAPE, replace(SETUP, micro_batch=4), device_named("h20-96g"), layers=3)
    assert (answer.k, answer.fits) == (3, False)


def test_on_a_device_without_measurements_the_band_is_wide_and_says_so() -> None:
    answer = recommend(SHAPE, SETUP, device_named("h20-96g"))
    assert not answer.calibration.measured
    assert answer.high_bytes - answer.low_bytes == pytest.approx(0.2 * answer.needed_bytes)
    assert "nothing was measured" in answer.calibration.source


def test_the_safe_number_fits_at_the_high_end_of_the_band() -> None:
    wanted = replace(SETUP, micro_batch=2, sequence=8192)
    answer = recommend(SHAPE, wanted, device_named("h20-96g"))
    assert answer.safe_k is not None
    assert answer.safe_k > answer.k
    assert recommend(SHAPE, wanted, device_named("h20-96g"), layers=answer.safe_k).sure


@pytest.mark.parametrize("layers", [-1, 33])
def test_a_number_of_layers_that_the_model_lacks_is_refused(layers: int) -> None:
    with pytest.raises(UsageError):
        peak_of(SHAPE, SETUP.recomputing(layers))


def test_a_sequence_beyond_the_models_positions_is_refused() -> None:
    with pytest.raises(SequenceTooLongError):
        peak_of(SHAPE, replace(SETUP, sequence=16384))


def test_full_recomputation_costs_about_a_third_more_time() -> None:
    h100 = device_named("h100-80g")
    none, full = (step_time(SHAPE, SETUP.recomputing(k), h100) for k in (0, 32))
    assert none is not None
    assert full is not None
    assert 1.30 < full.seconds / none.seconds < 1.33  # published: 30 to 33% more operations
    assert none.mfu == pytest.approx(none.efficiency)
    assert full.mfu < full.efficiency


def test_a_device_without_a_known_peak_has_no_step_time() -> None:
    assert step_time(SHAPE, SETUP, Device("cpu", 1, {})) is None


def test_a_published_throughput_gives_its_published_mfu() -> None:
    # torchtitan, 8 H100, sequence 8192: 5,762 tokens/s per GPU, "33%".
    time = step_time(SHAPE, replace(SETUP, sequence=8192), device_named("h100-80g"), efficiency=0.337)
    assert time is not None
    assert time.tokens_per_second == pytest.approx(5762, rel=0.01)


def test_a_sweep_marks_a_sequence_that_is_too_long_and_goes_on() -> None:
    axes = axes_of(["micro-batch=1,2", "sequence=4096,16384"])
    cells = list(sweep(SHAPE, SETUP, axes, device_named("h20-96g")))
    assert [(cell.setup.micro_batch, cell.setup.sequence) for cell in cells] == [
        (1, 4096),
        (1, 16384),
        (2, 4096),
        (2, 16384),
    ]
    assert [cell.recommendation is None for cell in cells] == [False, True, False, True]


@pytest.mark.parametrize("text", ["batch=1", "sequence", "sequence=", "sequence=4k"])
def test_an_axis_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        axes_of([text])
    assert "micro_batch" in (caught.value.hint or "")


def test_bars_are_as_long_as_their_share_of_the_peak() -> None:
    peak = Peak((Phase("loss", {"parameters": 30, "logits": 30}), Phase("optimizer step", {"parameters": 30})))
    drawn = bars(peak, width=10).splitlines()
    assert drawn[0].split("GB  ")[1] == "PPPPPLLLLL <"
    assert drawn[1].split("GB  ")[1] == "PPPPP"
