"""k of n layers recompute: the same gradients to the bit, exactly n + k forwards, whatever Transformers' form is."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator

import pytest
import torch
from ljperf.errors import UsageError
from ljperf.models.building import build
from ljperf.models.catalog import model_named
from ljperf.recompute.layers import FirstLayers, NoStackError, apply_to_first, dispatch, stack_of
from torch import nn
from transformers import AutoModelForCausalLM, LlamaConfig, T5Config, T5ForConditionalGeneration

LAYERS = 4


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(7)


def tiny() -> nn.Module:
    return build(model_named("tiny"), dtype=torch.float32).train()


def forwards_of(model: nn.Module) -> list[int]:
    """How often each layer's forward runs, counted where its MLP begins: recomputing stops early."""
    counts = [0] * LAYERS

    def count(place: int) -> None:
        counts[place] += 1

    for place, layer in enumerate(stack_of(model)):
        layer.mlp.register_forward_pre_hook(lambda *_, place=place: count(place))
    return counts


def step(model: nn.Module) -> dict[str, torch.Tensor]:
    ids = torch.arange(64).reshape(2, 32)
    model(input_ids=ids, labels=ids).loss.backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}
    assert gradients
    return gradients


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("k", range(LAYERS + 1))
def test_gradients_are_bitwise_those_of_full_recomputation(k: int, reentrant: bool) -> None:
    model = tiny()
    full, some = copy.deepcopy(model), copy.deepcopy(model)
    full.gradient_checkpointing_enable({"use_reentrant": reentrant})
    full.enable_input_require_grads()
    assert apply_to_first(some, k, use_reentrant=reentrant) == LAYERS
    some.enable_input_require_grads()
    counts = forwards_of(some)
    expected, found = step(full), step(some)
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    assert counts == [2] * k + [1] * (LAYERS - k)


def test_evaluation_recomputes_nothing_and_chooses_nothing() -> None:
    model, asked = tiny(), []
    model.gradient_checkpointing_enable()
    dispatch(model, stack_of(model), lambda first: asked.append(first) or 1)
    with torch.no_grad():
        model(input_ids=torch.arange(8)[None])
    assert asked == []
    step(model)
    (first,) = asked
    assert (first.sequences, first.sequence, first.width) == (2, 32, 64)
    step(model)
    assert len(asked) == 1


def test_without_an_answer_all_layers_recompute() -> None:
    model = tiny()
    model.gradient_checkpointing_enable({"use_reentrant": False})
    dispatch(model, stack_of(model), lambda _: None)
    counts = forwards_of(model)
    step(model)
    assert counts == [2] * LAYERS


def test_switched_on_twice_the_function_is_not_wrapped_twice() -> None:
    model = tiny()
    apply_to_first(model, 1, use_reentrant=False)
    apply_to_first(model, 2, use_reentrant=False)
    counts = forwards_of(model)
    step(model)
    assert counts == [2, 2, 1, 1]


def test_later_transformers_hand_each_layer_its_own_function() -> None:
    """From 4.53 on a layer calls `func(partial(super().__call__, **kwargs), *args)` of its own attribute."""
    import functools

    class Layer(nn.Linear):
        def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
            return self._gradient_checkpointing_func(functools.partial(super().__call__), hidden)

    ran: list[int] = []

    def checkpoint(function: object, *args: torch.Tensor) -> torch.Tensor:
        ran.append(1)
        return function(*args)  # type: ignore[operator]

    layers = nn.ModuleList(Layer(4, 4) for _ in range(3))
    model = nn.Module()
    model.layers = layers
    for layer in layers:
        layer._gradient_checkpointing_func = checkpoint
    dispatch(model, layers, lambda _: 2)
    hidden = torch.ones(1, 2, 4, requires_grad=True)
    for layer in layers:
        hidden = layer(hidden)
    assert len(ran) == 2


def test_a_model_of_two_stacks_is_refused() -> None:
    config = T5Config(d_model=16, d_kv=4, d_ff=16, num_layers=2, num_decoder_layers=2, num_heads=2, vocab_size=32)
    with pytest.raises(NoStackError):
        apply_to_first(T5ForConditionalGeneration(config), 1)


def test_shared_layers_are_refused() -> None:
    model = tiny()
    model.model.layers[1] = model.model.layers[0]
    with pytest.raises(NoStackError, match="shared"):
        apply_to_first(model, 1)


@pytest.mark.parametrize("k", [-1, LAYERS + 1])
def test_a_number_that_the_model_does_not_have_is_refused(k: int) -> None:
    with pytest.raises(UsageError, match=str(LAYERS)):
        apply_to_first(tiny(), k)


def test_a_saved_model_loads_where_there_is_no_ljperf() -> None:
    model = tiny()
    apply_to_first(model, 1)
    saved = pickle.dumps(model.model._gradient_checkpointing_func)
    assert b"ljperf" not in saved
    assert not isinstance(pickle.loads(saved), FirstLayers)


def test_frozen_layers_below_an_adapter_train_like_before() -> None:
    model = tiny()
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("layers.3" in name)
    full, some = copy.deepcopy(model), copy.deepcopy(model)
    full.gradient_checkpointing_enable({"use_reentrant": False})
    apply_to_first(some, 2, use_reentrant=False)
    expected, found = step(full), step(some)
    assert all(torch.equal(expected[name], found[name]) for name in expected)


@pytest.fixture
def dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.slow
@pytest.mark.usefixtures("dynamo")
@pytest.mark.parametrize("reentrant", [True, False])
def test_a_compiled_model_stays_one_graph(reentrant: bool) -> None:
    from torch._dynamo.utils import counters

    eager = tiny()
    model = copy.deepcopy(eager)
    for each in (eager, model):
        apply_to_first(each, 2, use_reentrant=reentrant)
    counters.clear()
    ids = torch.arange(64).reshape(2, 32)
    compiled = torch.compile(model, backend="eager")
    losses = [each(input_ids=ids, labels=ids).loss for each in (eager, compiled)]
    for loss in losses:
        loss.backward()
    assert sum(counters["graph_break"].values()) == 0
    assert counters["stats"]["unique_graphs"] == 1
    assert torch.equal(*losses)


def test_other_families_have_the_same_call() -> None:
    for family in ("qwen2", "mistral", "phi3"):
        from dataclasses import replace

        model = build(replace(model_named("tiny"), family=family), dtype=torch.float32).train()
        apply_to_first(model, 1, use_reentrant=False)
        counts = forwards_of(model)
        step(model)
        assert counts == [2, 1, 1, 1], family


def test_a_model_without_recomputation_is_refused() -> None:
    config = LlamaConfig(hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2, vocab_size=8)
    model = AutoModelForCausalLM.from_config(config)
    with pytest.raises(NoStackError, match="nowhere"):
        dispatch(model, stack_of(model), lambda _: 1)
