"""What users reported in public about memory, and what the plan says there: its direction and its size.

Where a report leaves the sequence open, only what does not depend on it is compared.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from ljperf.devices import device_named
from ljperf.memory.phases import peak_of
from ljperf.memory.recommend import recommend
from ljperf.models.catalog import model_named
from ljperf.models.shape import ModelShape
from ljperf.setup import TrainingSetup

LLAMA_7B = ModelShape("llama-7b", "llama", 4096, 32, 32, 32, 128, 11008, 32000, 4096)
LLAMA_13B = ModelShape("llama-13b", "llama", 5120, 40, 40, 40, 128, 13824, 32000, 4096)
# GPT-J's 6.05 billion parameters in a Llama's form.
SIX_B = ModelShape("six-b", "llama", 4096, 28, 32, 32, 128, 10923, 50400, 2048)


def test_deepspeed_4527_an_estimate_of_half_a_gigabyte_became_fifteen_since_the_whole_model_was_on_the_device() -> None:
    setup = TrainingSetup(world_size=4, zero_init=False, optimizer_offload=True, sequence=512)
    start = peak_of(LLAMA_7B, setup).phases[0]
    assert start.name == "initialisation"
    assert start.bytes == pytest.approx(14.7e9, rel=0.1)  # reported, with the context


@pytest.mark.parametrize("ranks", [2, 4])
def test_deepspeed_4093_more_ranks_do_not_help_a_model_that_is_built_whole(ranks: int) -> None:
    setup = TrainingSetup(world_size=ranks, zero_init=False, optimizer_offload=True, sequence=512)
    assert peak_of(SIX_B, setup).phases[0].bytes == pytest.approx(13e9, rel=0.1)


def test_deepspeed_4305_and_3734_stage_3_takes_more_than_stage_2_without_zero_init() -> None:
    shape = model_named("llama3-8b")
    second = TrainingSetup(world_size=8, zero_stage=2, sequence=1024)
    third = replace(second, zero_stage=3)
    peaks = [peak_of(shape, setup).bytes for setup in (third, second, replace(third, zero_init=False))]
    assert peaks == sorted(peaks)


def test_deepspeed_1302_stage_2_takes_more_than_stage_1_by_its_buckets_on_a_small_model() -> None:
    shape = replace(model_named("llama3.2-1b"), layers=2)
    first = TrainingSetup(world_size=2, zero_stage=1, sequence=128, reduce_bucket=50_000_000)
    second = replace(first, zero_stage=2, reduce_bucket=500_000_000, overlap_comm=True)
    assert peak_of(shape, second).bytes > peak_of(shape, first).bytes


@pytest.mark.parametrize("ranks", [4, 64])
def test_deepspeed_5102_the_estimator_is_a_lower_bound_of_a_real_peak(ranks: int) -> None:
    shape = model_named("llama3-70b")
    estimate = 18 * 70_553_706_496 / ranks + 4 * 128256 * 8192
    assert peak_of(shape, TrainingSetup(world_size=ranks, sequence=4096, recompute_layers=80)).bytes > 0.9 * estimate


def test_deepspeed_2996_thirteen_billion_in_fp32_run_out_of_eight_times_48_gb() -> None:
    setup = TrainingSetup(world_size=8, zero_stage=2, precision="fp32", sequence=2048)
    answer = recommend(LLAMA_13B, setup, device_named("a6000-48g"))
    assert not answer.fits
    assert any("--zero 3" in remedy or "--world-size" in remedy for remedy in answer.remedies)


def test_automodel_3907_the_full_logits_are_what_a_fused_loss_saves() -> None:
    shape = model_named("qwen2.5-7b")
    plain = TrainingSetup(world_size=8, sequence=8192, micro_batch=2, recompute_layers=shape.layers)
    saved = peak_of(shape, plain).bytes - peak_of(shape, replace(plain, loss="chunked")).bytes
    assert saved > 10 * shape.vocab * plain.tokens


def test_trl_3678_logits_of_2_times_256_tokens_peak_at_three_times_their_fp32_size() -> None:
    shape = ModelShape("qwen-0.6b", "qwen2", 1024, 28, 16, 8, 64, 3072, 151_665, 4096, tied=True)
    loss = next(p for p in peak_of(shape, TrainingSetup(micro_batch=2, sequence=256)).phases if p.name == "loss")
    assert loss.parts["logits"] == pytest.approx(902e6, rel=0.25)


def test_torchtitan_8b_on_8_h100_lies_between_full_and_no_recomputation() -> None:
    shape = model_named("llama3-8b")
    setup = TrainingSetup(framework="fsdp", world_size=8, micro_batch=2, sequence=8192)
    published = 82.4 * 1024**3  # with selective recomputation of single operations, which is neither
    assert peak_of(shape, setup.recomputing(32)).bytes < published < peak_of(shape, setup).bytes
