"""The DeepSpeed config that reaches DeepSpeed: the user's, or the setup's, with every number in place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ljperf.benchmark.place import Place
from ljperf.benchmark.request import Request
from ljperf.setup import TrainingSetup


def complete(given: Mapping[str, Any], setup: TrainingSetup, request: Request, place: Place) -> dict[str, Any]:
    """The user's config with what it leaves open (absent or "auto"); without one, all of it from the setup."""
    config = dict(given)
    for key, value in _batch(setup).items():
        config[key] = value
    if not given:
        config[setup.precision if setup.precision != "fp32" else "bf16"] = {"enabled": setup.precision != "fp32"}
    config["zero_optimization"] = _zero(given.get("zero_optimization", {}), setup, given=bool(given))
    _fill(config, "optimizer", _optimizer(request, place))
    _fill(config, "gradient_clipping", 1.0)
    config.setdefault("steps_per_print", 1_000_000_000)
    return config


def _batch(setup: TrainingSetup) -> dict[str, int]:
    return {
        "train_micro_batch_size_per_gpu": setup.micro_batch,
        "gradient_accumulation_steps": setup.accumulation,
        "train_batch_size": setup.micro_batch * setup.accumulation * setup.world_size,
    }


def _zero(section: Mapping[str, Any], setup: TrainingSetup, given: bool) -> dict[str, Any]:
    """Sizes as Transformers derives "auto" from the hidden size; a user's own numbers stay."""
    sizes: dict[str, int] = {"reduce_bucket_size": setup.reduce_bucket}
    if setup.zero_stage == 3:
        sizes["stage3_prefetch_bucket_size"] = setup.prefetch_bucket
        sizes["stage3_param_persistence_threshold"] = setup.persistence_threshold
    open_keys = sizes if not given else {key: size for key, size in sizes.items() if section.get(key) == "auto"}
    return {**section, "stage": setup.zero_stage, **open_keys}


def _optimizer(request: Request, place: Place) -> dict[str, Any]:
    # torch's own AdamW: DeepSpeed's CPU and fused ones are compiled at their first use, which needs a compiler.
    parameters = {"lr": request.learning_rate, "weight_decay": 0.0, "torch_adam": True}
    return {"type": "AdamW", "params": parameters | ({"fused": True} if place.kind == "cuda" else {})}


def _fill(config: dict[str, Any], key: str, value: Any) -> None:
    if config.get(key, "auto") == "auto":
        config[key] = value
