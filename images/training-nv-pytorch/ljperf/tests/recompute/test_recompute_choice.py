"""How many layers recompute: told, planned for a device, or all in any doubt; one line says which."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
import torch
from ljperf.models.building import build
from ljperf.models.catalog import model_named
from ljperf.recompute.choice import choose
from ljperf.recompute.layers import Asked
from torch import nn

ASKED = Asked(2, 32, 64, True)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> nn.Module:
    monkeypatch.delenv("CHECKPOINT_OPTIMIZATION_LAYERS", raising=False)
    monkeypatch.delenv("CHECKPOINT_OPTIMIZATION_DEVICE", raising=False)
    monkeypatch.delenv("RANK", raising=False)
    return build(model_named("tiny"), dtype=torch.bfloat16).train()


@pytest.mark.parametrize(("told", "expected"), [("0", 0), ("3", 3), ("99", 4)])
def test_what_is_told_counts(
    model: nn.Module, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], told: str, expected: int
) -> None:
    monkeypatch.setenv("CHECKPOINT_OPTIMIZATION_LAYERS", told)
    assert choose(model, 4, True, ASKED) == expected
    said = capsys.readouterr().err
    assert said == f"ljperf: the first {expected} of 4 layers recompute: CHECKPOINT_OPTIMIZATION_LAYERS\n"


@pytest.mark.parametrize("told", ["many", "-1", "2.5"])
def test_what_is_no_number_is_a_doubt(
    model: nn.Module, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], told: str
) -> None:
    monkeypatch.setenv("CHECKPOINT_OPTIMIZATION_LAYERS", told)
    assert choose(model, 4, True, ASKED) is None
    assert f"CHECKPOINT_OPTIMIZATION_LAYERS={told} is no number of layers" in capsys.readouterr().err


def test_without_an_accelerator_there_is_nothing_to_plan_for(
    model: nn.Module, capsys: pytest.CaptureFixture[str]
) -> None:
    assert choose(model, 4, True, ASKED) is None
    said = capsys.readouterr().err
    assert said.startswith("ljperf: all layers recompute: there is no accelerator to plan for")
    assert said.count("\n") == 1


def test_for_a_device_with_room_no_layer_recomputes(
    model: nn.Module, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CHECKPOINT_OPTIMIZATION_DEVICE", "h20-96g")
    assert choose(model, 4, True, ASKED) == 0
    assert "the first 0 of 4 layers recompute" in capsys.readouterr().err


def test_an_input_without_gradient_under_reentrant_recomputation_is_a_doubt(
    model: nn.Module, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CHECKPOINT_OPTIMIZATION_LAYERS", "1")
    assert choose(model, 4, True, Asked(2, 32, 64, False)) is None
    assert "enable_input_require_grads" in capsys.readouterr().err
    assert choose(model, 4, False, Asked(2, 32, 64, False)) == 1


def test_other_ranks_say_nothing(
    model: nn.Module, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANK", "1")
    assert choose(model, 4, True, ASKED) is None
    assert capsys.readouterr().err == ""


def test_a_transformers_of_another_form_stays_as_it_is() -> None:
    from ljperf.recompute.transformers_models import patch

    module = ModuleType("transformers.modeling_utils")

    class PreTrainedModel:
        def _set_gradient_checkpointing(self, module: object, value: bool = False) -> None:
            """Of models that came before the form we know."""

    before = PreTrainedModel._set_gradient_checkpointing
    module.PreTrainedModel = PreTrainedModel  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="not known here"):
        patch(module)
    assert PreTrainedModel._set_gradient_checkpointing is before


def test_the_patched_class_chooses_once_for_trainers_and_loops(
    monkeypatch: pytest.MonkeyPatch, model: nn.Module, capsys: pytest.CaptureFixture[str]
) -> None:
    from ljperf.recompute.transformers_models import patch

    module = sys.modules["transformers.modeling_utils"]
    monkeypatch.setattr(
        module.PreTrainedModel, "_set_gradient_checkpointing", module.PreTrainedModel._set_gradient_checkpointing
    )
    patch(module)
    monkeypatch.setenv("CHECKPOINT_OPTIMIZATION_LAYERS", "1")
    model.gradient_checkpointing_enable({"use_reentrant": False})
    counts = [0]
    model.model.layers[0].mlp.register_forward_pre_hook(lambda *_: counts.__setitem__(0, counts[0] + 1))
    ids = torch.arange(64).reshape(2, 32)
    for _ in range(2):
        model(input_ids=ids, labels=ids).loss.backward()
    assert counts == [4]
    assert capsys.readouterr().err.count("the first 1 of 4 layers recompute") == 1
    model.gradient_checkpointing_disable()
    assert model.model.gradient_checkpointing is False


def test_a_checkpoint_function_of_ones_own_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, model: nn.Module, capsys: pytest.CaptureFixture[str]
) -> None:
    from ljperf.recompute.transformers_models import select

    model.gradient_checkpointing_enable()
    before = model.model._gradient_checkpointing_func
    select(model, lambda function, *args: function(*args), 1)
    assert model.model._gradient_checkpointing_func is before
    assert "it brings a checkpoint function of its own" in capsys.readouterr().err
    select(model, before, 2)
    assert "every 2th layer recomputes, as was asked for" in capsys.readouterr().err
