from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ljperf.benchmark.request import (
    IndivisibleError,
    Request,
    UnknownFrameworkError,
    read_ds_config,
    setup_of,
    target_of,
)
from ljperf.errors import UsageError
from ljperf.models.catalog import model_named

TINY = model_named("tiny")  # 4 layers, hidden 64, 512 positions


def request(**changes: Any) -> Request:
    return Request(**{"framework": "deepspeed", "model": "tiny", **changes})


def test_a_target_is_a_framework_and_a_model() -> None:
    assert target_of("fsdp/llama3-8b") == ("fsdp", "llama3-8b")


def test_an_unknown_framework_is_answered_with_the_closest() -> None:
    with pytest.raises(UnknownFrameworkError) as raised:
        target_of("deepsped/tiny")
    assert raised.value.hint == "did you mean deepspeed/tiny?"


@pytest.mark.parametrize("text", ["tiny", "deepspeed/", ""])
def test_a_target_without_both_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="is not FRAMEWORK/MODEL"):
        target_of(text)


def test_defaults_are_the_models_maximum_zero_3_and_sizes_derived_from_the_width() -> None:
    setup = setup_of(request(), TINY, 1)
    assert (setup.sequence, setup.zero_stage, setup.zero_init) == (512, 3, True)
    # As Transformers fills "auto": h*h, int(0.9*h*h), 10*h for h = 64.
    assert (setup.reduce_bucket, setup.prefetch_bucket, setup.persistence_threshold) == (4096, 3686, 640)


def test_a_sequence_over_the_maximum_is_refused() -> None:
    with pytest.raises(UsageError, match=r"512 positions.*513"):
        setup_of(request(sequence=513), TINY, 1)


@pytest.mark.parametrize(("asked", "layers"), [("none", 0), ("full", 4), ("auto", 0), ("3", 3), ("0", 0)])
def test_recompute_takes_words_and_numbers(asked: str, layers: int) -> None:
    assert setup_of(request(recompute=asked), TINY, 1).recompute_layers == layers


@pytest.mark.parametrize("asked", ["5", "-1", "some"])
def test_recompute_refuses_what_the_model_has_not(asked: str) -> None:
    with pytest.raises(UsageError, match="tiny has 4 layers"):
        setup_of(request(recompute=asked), TINY, 1)


def test_a_global_batch_decides_the_accumulation() -> None:
    assert setup_of(request(global_batch=24, micro_batch=2), TINY, 3).accumulation == 4


def test_a_global_batch_that_the_ranks_cannot_share_is_refused_with_one_that_they_can() -> None:
    with pytest.raises(IndivisibleError, match="a batch of 10") as raised:
        setup_of(request(global_batch=10, micro_batch=2), TINY, 3)
    assert raised.value.hint == "a multiple of 6 can, such as 6"


def test_a_configs_batch_that_the_ranks_cannot_share_is_refused() -> None:
    config = {"train_batch_size": 7, "zero_optimization": {"stage": 2}}
    with pytest.raises(IndivisibleError, match="a batch of 7"):
        setup_of(request(), TINY, 2, config)


def test_zero_groups_that_do_not_divide_the_ranks_are_refused() -> None:
    config = {"zero_optimization": {"stage": 3, "zero_hpz_partition_size": 4}}
    with pytest.raises(IndivisibleError, match="6 ranks cannot be divided into groups of 4") as raised:
        setup_of(request(ds_config=Path("c.json")), TINY, 6, config)
    assert raised.value.location == "c.json: /zero_optimization/zero_hpz_partition_size"


def test_a_configs_own_numbers_are_the_setups() -> None:
    zero = {"stage": 2, "reduce_bucket_size": 1000, "stage3_prefetch_bucket_size": "auto"}
    config = {"train_micro_batch_size_per_gpu": 3, "gradient_accumulation_steps": 2, "zero_optimization": zero}
    setup = setup_of(request(), TINY, 2, config)
    assert (setup.zero_stage, setup.micro_batch, setup.accumulation, setup.reduce_bucket) == (2, 3, 2, 1000)
    assert setup.prefetch_bucket == 3686


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"framework": "ddp", "zero": 2}, "DeepSpeed's; ddp has no stages"),
        ({"framework": "fsdp", "ds_config": Path("c.json")}, "fsdp reads none"),
        ({"zero": 2, "ds_config": Path("c.json")}, "both give the stage"),
        ({"steps": 0}, "--steps must be at least 1"),
        ({"micro_batch": 0}, "--micro-batch must be at least 1"),
        ({"warmup": -1}, "--warmup must be at least 0"),
    ],
)
def test_what_cannot_be_together_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        setup_of(request(**changes), TINY, 1)


def test_hf_trains_without_deepspeed_until_a_stage_is_given() -> None:
    assert setup_of(request(framework="hf"), TINY, 1).zero_stage == 0
    assert setup_of(request(framework="hf", zero=3), TINY, 1).zero_stage == 3


@pytest.mark.parametrize("text", ["{", "[]", None])
def test_a_config_that_is_none_is_refused(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "c.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError) as raised:
        read_ds_config(path)
    assert raised.value.location == str(path)


def test_a_config_is_read(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(json.dumps({"zero_optimization": {"stage": 1}}))
    assert read_ds_config(tmp_path / "c.json") == {"zero_optimization": {"stage": 1}}
    assert read_ds_config(None) == {}
