from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ljperf.benchmark import checks
from ljperf.benchmark.checks import findings
from ljperf.benchmark.ds_config import complete
from ljperf.benchmark.place import Place
from ljperf.benchmark.request import Request, setup_of
from ljperf.devices import Device
from ljperf.models.catalog import model_named

TINY = model_named("tiny")
CPU = Place(0, 0, 2, "cpu")


def completed(given: dict[str, Any], framework: Any = "deepspeed") -> tuple[dict[str, Any], list[str]]:
    request = Request(framework, "tiny", ds_config=Path("c.json") if given else None)
    setup = setup_of(request, TINY, 2, given)
    config = complete(given, setup, request, CPU)
    return config, findings(given, config, setup)


def test_without_a_config_the_setups_is_whole_and_has_no_finding() -> None:
    config, lines = completed({})
    assert config["zero_optimization"] == {
        "stage": 3,
        "reduce_bucket_size": 4096,
        "stage3_prefetch_bucket_size": 3686,
        "stage3_param_persistence_threshold": 640,
    }
    assert config["bf16"] == {"enabled": True}
    assert config["train_batch_size"] == 2
    assert lines == []


def test_a_users_numbers_stay_and_auto_is_filled() -> None:
    zero = {"stage": 3, "reduce_bucket_size": 77, "stage3_prefetch_bucket_size": "auto"}
    config, _ = completed({"bf16": {"enabled": True}, "train_batch_size": "auto", "zero_optimization": zero})
    assert config["zero_optimization"] == {"stage": 3, "reduce_bucket_size": 77, "stage3_prefetch_bucket_size": 3686}
    assert (config["train_batch_size"], config["optimizer"]["type"]) == (2, "AdamW")


def test_what_is_odd_in_a_users_config_is_a_note_of_the_run() -> None:
    zero = {"stage": 2, "stage3_max_live_parameters": 5}
    _, lines = completed({"fp16": {"enabled": True}, "bf16": {"enabled": True}, "zero_optimization": zero})
    assert any("stage3_max_live_parameters" in line for line in lines)
    assert any(line.startswith("check: error at /") for line in lines)  # both precisions


@pytest.mark.parametrize(("memory", "layers", "said"), [(2**40, 0, "the first 0 of 4"), (2**20, 4, "may not fit")])
def test_auto_takes_the_fewest_layers_that_the_plan_lets_fit(
    monkeypatch: pytest.MonkeyPatch, memory: int, layers: int, said: str
) -> None:
    monkeypatch.setattr(checks, "_device", lambda place: Device("cpu", memory, {}))
    setup, why = checks.recommended(TINY, setup_of(Request("ddp", "tiny"), TINY, 1), CPU, None)
    assert setup.recompute_layers == layers
    assert said in why
