"""Warnings at `deepspeed.initialize`: once, on rank 0, and never in the way."""

from __future__ import annotations

import base64
import json
import logging
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from ljperf.dsconfig import warning
from ranks import run_alone

ODD = {"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": 0}}
ENGINE = object()


@pytest.fixture
def deepspeed(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module with an `initialize` of DeepSpeed's signature, patched."""

    def initialize(
        args: Any = None, model: Any = None, mpu: Any = None, config: Any = None, config_params: Any = None
    ) -> Any:
        return ENGINE

    monkeypatch.setattr(warning, "_said", set())
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    module = ModuleType("deepspeed")
    module.initialize = initialize  # type: ignore[attr-defined]
    warning.patch(module)
    return module


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("form", ["config", "config_params", "args", "path", "base64", "positional"])
def test_a_config_is_found_in_every_form_that_deepspeed_takes(
    deepspeed: ModuleType, caplog: pytest.LogCaptureFixture, tmp_path: Path, form: str
) -> None:
    (tmp_path / "c.json").write_text(json.dumps(ODD))
    text = base64.urlsafe_b64encode(json.dumps(ODD).encode()).decode()
    arguments: dict[str, Any] = {
        "config": {"config": ODD},
        "config_params": {"config_params": ODD},
        "args": {"args": SimpleNamespace(deepspeed_config=str(tmp_path / "c.json"))},
        "path": {"config": tmp_path / "c.json"},
        "base64": {"config": text},
        "positional": {},
    }[form]
    positional = (None, None, None, ODD) if form == "positional" else ()
    assert deepspeed.initialize(*positional, **arguments) is ENGINE
    (line,) = said(caplog)
    assert "/zero_optimization/stage3_prefetch_bucket_size" in line


def test_a_line_is_said_once(deepspeed: ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    warning.patch(deepspeed)
    deepspeed.initialize(config=ODD)
    deepspeed.initialize(config=ODD)
    assert len(said(caplog)) == 1


def test_other_ranks_say_nothing(
    deepspeed: ModuleType, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "1")
    assert deepspeed.initialize(config=ODD) is ENGINE
    assert said(caplog) == []


@pytest.mark.parametrize("config", [None, "", "no such file", {"zero_optimization": []}, 5, {1: 2}])
def test_no_config_is_in_the_way(deepspeed: ModuleType, config: Any) -> None:
    assert deepspeed.initialize(config=config) is ENGINE


def test_deepspeeds_own_errors_pass_through(monkeypatch: pytest.MonkeyPatch) -> None:
    def initialize(config: Any) -> None:
        raise RuntimeError("its own")

    module = ModuleType("deepspeed")
    module.initialize = initialize  # type: ignore[attr-defined]
    warning.patch(module)
    with pytest.raises(RuntimeError, match="its own"):
        module.initialize(config=ODD)
    with pytest.raises(TypeError):
        module.initialize(unknown=1)


def test_the_number_that_transformers_filled_in_is_not_blamed(
    deepspeed: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    config = {**ODD, "zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": 15_099_494}}
    model = SimpleNamespace(config=SimpleNamespace(hidden_size=4096), parameters=list, modules=list)
    pytest.importorskip("torch")
    deepspeed.initialize(config=config, model=model)
    assert said(caplog) == []


PROGRAM = """
import logging, os, sys
logging.basicConfig(format="%(message)s", stream=sys.stdout)
os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
import torch, deepspeed
from ljperf.dsconfig.warning import patch, linear_is_deepspeed
logging.getLogger("DeepSpeed").setLevel(50)
real, deepspeed.initialize = deepspeed.initialize, lambda model=None, config=None: "engine"
patch(deepspeed)
config = {"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": True}, "zero_optimization": {"stage": 3}}
build = lambda: torch.nn.Sequential(torch.nn.Linear(64, 64, bias=False), torch.nn.Linear(64, 64), torch.nn.ReLU())
print("stage 2"); deepspeed.initialize(model=build(), config={**config, "zero_optimization": {"stage": 2}})
print("early", linear_is_deepspeed()); deepspeed.initialize(model=build(), config=config)
deepspeed.init_distributed(dist_backend="gloo", verbose=False)
with deepspeed.zero.Init(config_dict_or_path=config):
    model = build()
print("init", linear_is_deepspeed()); deepspeed.initialize(model=model, config=config)
print("after"); deepspeed.initialize(model=build(), config=config)
"""


@pytest.mark.slow
def test_a_model_built_before_zero_init_is_told_with_the_bytes_that_stay(tmp_path: Path) -> None:
    pytest.importorskip("deepspeed")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    import sys

    out = run_alone([sys.executable, str(program)]).stdout.splitlines()
    kept = [line for line in out if line.startswith(("stage 2", "early", "init", "after", "ljperf:"))]
    assert [line.split(":")[0] for line in kept] == ["stage 2", "early False", "ljperf", "init True", "after"]
    # Two Linear weights of 64 x 64, which DeepSpeed will hold in bf16.
    assert "before zero.Init" in kept[2]
    assert f"{2 * 64 * 64 * 2 / 1e3:.1f} kB" in kept[2]
