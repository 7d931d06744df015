"""Bytes of states, gathers and buckets for each way of sharding; expected values are DeepSpeed's own rules."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ljperf.errors import UsageError
from ljperf.memory.gathers import gathers_of, prefetched, reused
from ljperf.memory.states import persistent_elements, states_of
from ljperf.models.catalog import model_named
from ljperf.setup import TrainingSetup

SHAPE = model_named("llama3-8b")
TOTAL = 8_030_261_248  # published
LAYER_WEIGHTS = 218_103_808  # 218,112,000 of a block, less its two norms
HEAD = 525_336_576
HF = TrainingSetup(
    world_size=8, reduce_bucket=16_777_216, prefetch_bucket=15_099_494, persistence_threshold=40_960
)  # what "auto" becomes for a hidden size of 4096


def test_zero3_keeps_16_bytes_per_parameter_and_rank_and_4_more_for_a_moment() -> None:
    states = states_of(SHAPE, replace(HF, persistence_threshold=0))
    assert states.parameters + states.gradients + states.optimizer == 16 * TOTAL // 8
    assert states.step == 4 * min(TOTAL // 8, 1_000_000_000)


def test_zero3_keeps_norms_on_every_rank_under_transformers() -> None:
    assert persistent_elements(SHAPE, HF) == 65 * 4096
    assert persistent_elements(SHAPE, replace(HF, persistence_threshold=0)) == 0


def test_zero2_adds_18_bytes_per_parameter_shared_to_whole_parameters() -> None:
    states = states_of(SHAPE, replace(HF, zero_stage=2))
    at_step = states.parameters + states.optimizer + states.gradients + states.step
    # DeepSpeed's estimator: 2P + 18P/N; the flattened shard of gradients is 2P/N more while it is cast.
    assert at_step == 2 * TOTAL + 20 * TOTAL // 8


def test_zero1_holds_whole_gradients_until_the_step() -> None:
    assert states_of(SHAPE, replace(HF, zero_stage=1)).per_gradient == 2
    assert states_of(SHAPE, replace(HF, zero_stage=2)).per_gradient == 0


def test_overlapping_the_reduction_takes_a_second_bucket() -> None:
    plain = TrainingSetup(world_size=8, zero_stage=2)
    assert states_of(SHAPE, plain).buckets == 1_000_000_000
    assert states_of(SHAPE, replace(plain, overlap_comm=True)).buckets == 2_000_000_000


def test_no_zero_in_bf16_keeps_fp32_gradients_of_all_parameters() -> None:
    states = states_of(SHAPE, replace(HF, zero_stage=0))
    assert states.parameters + states.gradients + states.optimizer == 6 * TOTAL + 12 * TOTAL // 8


@pytest.mark.parametrize("framework", ["ddp", "hf"])
def test_ddp_in_fp32_keeps_16_bytes_per_parameter(framework: str) -> None:
    setup = TrainingSetup(framework=framework, zero_stage=0, precision="fp32")  # type: ignore[arg-type]
    states = states_of(SHAPE, setup)
    assert states.parameters + states.optimizer + states.gradients + states.per_gradient * TOTAL == 16 * TOTAL


def test_fsdp_shares_all_16_bytes() -> None:
    states = states_of(SHAPE, TrainingSetup(framework="fsdp", world_size=8))
    assert states.parameters + states.optimizer + states.per_gradient * TOTAL == 16 * TOTAL // 8


def test_prefetch_fetches_whole_weights_and_so_more_than_its_bucket() -> None:
    mlp = 4096 * 14336
    assert prefetched(SHAPE, HF) == (mlp, False)
    assert prefetched(SHAPE, replace(HF, prefetch_bucket=mlp + 1)) == (2 * mlp, True)
    assert prefetched(SHAPE, replace(HF, prefetch_bucket=0)) == (0, False)


def test_a_leaf_block_is_gathered_twice_for_a_moment_and_its_gradients_wait() -> None:
    plain, leaf = (gathers_of(SHAPE, replace(HF, leaf_blocks=leaf)).block for leaf in (False, True))
    assert 2 * 2 * LAYER_WEIGHTS <= leaf - plain + 2 * 4096 * 14336 <= 3 * 2 * (LAYER_WEIGHTS + 2 * 4096)


def test_blocks_near_the_head_of_a_small_model_stay_gathered() -> None:
    assert reused(SHAPE, HF) == 0  # the head alone, forward and backward, is further than the reuse distance
    small = model_named("tiny")
    matrices = 2 * 64 * (64 + 32) + 3 * 64 * small.ffn
    assert reused(small, HF) == 4 * matrices


@settings(max_examples=30, deadline=None)
@given(st.sampled_from([0, 1, 2, 3]), st.integers(1, 512), st.integers(2, 8))
def test_more_ranks_never_take_more_states(stage: int, ranks: int, factor: int) -> None:
    few, many = (states_of(SHAPE, replace(HF, zero_stage=stage, world_size=n)) for n in (ranks, ranks * factor))
    assert many.parameters + many.optimizer + many.gradients <= few.parameters + few.optimizer + few.gradients


@pytest.mark.parametrize("setup", [TrainingSetup(world_size=0), TrainingSetup(zero_stage=4)])
def test_an_impossible_setup_is_refused(setup: TrainingSetup) -> None:
    with pytest.raises(UsageError):
        states_of(SHAPE, setup)
