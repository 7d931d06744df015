"""The tables and rules against the DeepSpeed that is installed: it is the judge of what it refuses."""

from __future__ import annotations

import os
from typing import Any

import pytest
from ljperf.dsconfig.check import findings
from ljperf.dsconfig.derived import derived, effective
from ljperf.dsconfig.keys import installed, parsed, sections

os.environ.setdefault("DS_ACCELERATOR", "cpu")
pytest.importorskip("deepspeed")
from deepspeed.comm.config import CommsLoggerConfig
from deepspeed.monitor.config import CometConfig, CSVConfig, TensorBoardConfig, WandbConfig
from deepspeed.runtime.config import DeepSpeedConfig, HybridEngineConfig
from deepspeed.runtime.zero.config import DeepSpeedZeroConfig
from deepspeed.runtime.zero.offload_config import (
    DeepSpeedZeroOffloadOptimizerConfig,
    DeepSpeedZeroOffloadParamConfig,
)

MODELS = {
    "zero_optimization": DeepSpeedZeroConfig,
    "zero_optimization/offload_param": DeepSpeedZeroOffloadParamConfig,
    "zero_optimization/offload_optimizer": DeepSpeedZeroOffloadOptimizerConfig,
    "comms_logger": CommsLoggerConfig,
    "tensorboard": TensorBoardConfig,
    "wandb": WandbConfig,
    "csv_monitor": CSVConfig,
    "comet": CometConfig,
    "hybrid_engine": HybridEngineConfig,
}
BATCH = {"train_micro_batch_size_per_gpu": 1}


def refused(config: dict[str, Any]) -> bool:
    try:
        DeepSpeedConfig(config)
    except Exception:
        return True
    return False


def has_error(config: dict[str, Any]) -> bool:
    found = findings(config, transformers=False, world_size=1)
    return any(finding.severity == "error" for finding in found)


@pytest.mark.parametrize("name", MODELS)
def test_the_table_of_a_section_has_the_names_of_deepspeeds_model(name: str) -> None:
    fields = MODELS[name].model_fields
    theirs = {each for field, spec in fields.items() for each in (field, spec.alias) if each}
    assert set(sections()[name].names(parsed(installed() or ""))) == theirs


@pytest.mark.parametrize("name", MODELS)
def test_defaults_are_those_of_deepspeeds_model(name: str) -> None:
    fields = MODELS[name].model_fields
    for key in sections()[name].keys:
        field = fields.get(key.also or key.name)
        # pin_memory became true in 0.19.5; the tables hold the newest default.
        if field is not None and key.default is not None and key.name != "pin_memory":
            assert key.default == field.default, key.name


VALUES: dict[str, list[Any]] = {
    "stage": [3, 3.0, "3", True, 4, -1, None, "three", 2.5],
    "reduce_bucket_size": [5e8, "500000000", "5e8", " 5 ", "5_000", "5.0", True, None, -1, 1.5, [1], "", float("inf")],
    "stage3_prefetch_bucket_size": [0, 15099494.4, 3774873.6, 11560550.4, 8493465.6, 5e7, "5e7", -1, None],
    "prefetch_bucket_size": [3, 3.5],
    "stage3_module_granularity_threshold": [-1, "x"],
    "overlap_comm": [True, "true", "True", "yes", "Off", 1, 0, 2, None, "maybe", 1.0, 0.5, ""],
    "contiguous_gradients": [None, "auto", "n"],
    "offload_param": [
        {},
        {"device": "cpu"},
        {"device": "gpu"},
        None,
        True,
        {"pin_memory": "auto"},
        "cpu",
        {"devic": 1},
    ],
    "offload_optimizer": [{"device": "cpu", "ratio": 2}, {"device": "cpu", "ratio": 0.5}, {"nvme_path": 5}],
    "zeropp_loco_param": [{}, 5],
    "mics_shard_size": ["8", "eight"],
    "overlap_com": [True],
    "leaf_module": [{"classes": ["LlamaDecoderLayer"]}],
    "stage3_gather_fp16_weights_on_model_save": [False],
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in VALUES.items() for value in values])
def test_a_value_is_an_error_exactly_where_deepspeed_refuses_it(key: str, value: Any) -> None:
    config = {**BATCH, "zero_optimization": {"stage": 3, key: value}}
    assert has_error(config) == refused(config)


CONFIGS: list[dict[str, Any]] = [
    {},
    {"train_batch_size": 4},
    {"train_batch_size": 4, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2},
    {"train_batch_size": 4, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 3},
    {"train_batch_size": 5, "train_micro_batch_size_per_gpu": 2},
    {"train_batch_size": 5, "gradient_accumulation_steps": 2},
    {"gradient_accumulation_steps": 2},
    {"train_batch_size": "auto"},
    {"train_batch_size": 0},
    {"train_batch_size": -4},
    {"train_micro_batch_size_per_gpu": "2"},
    {**BATCH, "fp16": {"enabled": True}, "bf16": {"enabled": True}},
    {**BATCH, "fp16": {"enabled": "auto"}, "bf16": {"enabled": "auto"}},
    {**BATCH, "fp16": {"enabled": False}, "bf16": {"enabled": True}},
    {**BATCH, "bfloat16": {"enabled": True}, "bf16": {"enabled": False}, "fp16": {"enabled": True}},
    {**BATCH, "communication_data_type": "auto"},
    {**BATCH, "zero_optimization": True},
    {**BATCH, "zero_optimization": {"stage": 2, "stage3_max_live_parameters": 1, "offload_param": {"device": "cpu"}}},
    {**BATCH, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "ratio": 0.5}}},
    {**BATCH, "zero_optimization": {"reduce_bucket_size": "auto"}},
    {**BATCH, "activation_checkpointing": {"partition_activations": True}},
    {**BATCH, "no_such_key": 1},
    {**BATCH, "tensorboard": {"enabled": True, "folder": "x"}},
    {**BATCH, "comms_logger": {"enabled": True, "prof_op": []}},
]


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_a_config_has_an_error_exactly_where_deepspeed_refuses_it(config: dict[str, Any]) -> None:
    assert has_error(config) == refused(config)


@pytest.mark.parametrize("written", [{}, {"stage3_prefetch_bucket_size": "auto"}, {"prefetch_bucket_size": 7}])
def test_the_size_in_effect_is_the_one_that_deepspeed_holds(written: dict[str, Any]) -> None:
    zero = {"stage": 3, **written}
    sizes = {size.name: size.plain for size in effective({"zero_optimization": zero}, None)}
    held = DeepSpeedZeroConfig(**zero)
    assert sizes["stage3_prefetch_bucket_size"] == held.prefetch_bucket_size
    assert sizes["reduce_bucket_size"] == held.reduce_bucket_size


def test_auto_under_transformers_becomes_what_transformers_derives() -> None:
    pytest.importorskip("transformers")
    from types import SimpleNamespace

    from transformers.integrations.deepspeed import HfTrainerDeepSpeedConfig

    names = ("reduce_bucket_size", "stage3_prefetch_bucket_size", "stage3_param_persistence_threshold")
    zero = {"stage": 3, **dict.fromkeys(names, "auto")}
    filled = HfTrainerDeepSpeedConfig({"zero_optimization": zero})
    model = SimpleNamespace(config=SimpleNamespace(hidden_size=3584))
    filled.trainer_config_finalize(SimpleNamespace(get_warmup_steps=lambda _: 0), model, 10)
    assert {name: derived(name, 3584) for name in names} == {n: filled.config["zero_optimization"][n] for n in names}
    shown = {size.name: size.transformers for size in effective({"zero_optimization": zero}, 3584)}
    assert shown == {n: filled.config["zero_optimization"][n] for n in names}
