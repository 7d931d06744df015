"""Blocks of small models in one process, on Dynamo's `eager` backend: its graphs are those of every backend."""

from __future__ import annotations

import copy
import logging
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from ljperf.compiling import counters, notice
from ljperf.compiling.backends import usable_backend
from ljperf.compiling.blocks import Compiled, TooLateError, compile_blocks
from ljperf.compiling.finding import NoBlocksError, stacks_of
from ljperf.compiling.forward import BlockForward, CompiledFunction
from ljperf.compiling.parameters import simplify_parameters
from torch import nn

MISSING = usable_backend("inductor", "cpu").why_not


@pytest.fixture(autouse=True)
def from_zero(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[None]:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("RANK", raising=False)
    notice._said.clear()
    torch._dynamo.reset()
    counters.reset()
    yield
    torch._dynamo.reset()


class Block(nn.Module):
    def __init__(self, breaks: bool = False) -> None:
        super().__init__()
        self.up, self.down, self.breaks = nn.Linear(4, 8), nn.Linear(8, 4), breaks

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        if self.breaks:
            torch._dynamo.graph_break()
        return hidden + self.down(torch.relu(self.up(hidden)))


class Model(nn.Module):
    def __init__(self, *broken: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(16, 4)
        self.layers = nn.ModuleList(Block(breaks=at in broken) for at in range(3))
        self.heads = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        hidden = self.embed(ids)
        for layer in self.layers:
            hidden = layer(hidden)
        return hidden


def run(model: nn.Module, *lengths: int) -> None:
    for length in lengths:
        model(torch.zeros(2, length, dtype=torch.long)).sum().backward()


def compiled(model: nn.Module, **kwargs: Any) -> Compiled:
    return compile_blocks(model, backend="eager", device="cpu", **kwargs)


def test_blocks_share_one_graph_and_compute_the_same() -> None:
    model = Model()
    expected = copy.deepcopy(model)
    compiled(model)
    run(model, 5, 5)
    run(expected, 5, 5)
    assert counters.graphs() == counters.Graphs(unique=1, breaks=0)
    for found, want in zip(model.parameters(), expected.parameters(), strict=True):
        assert (found.grad is None) == (want.grad is None)
        assert found.grad is None or torch.equal(found.grad, want.grad)


@pytest.mark.slow
@pytest.mark.skipif(MISSING is not None, reason=str(MISSING))
def test_kernels_are_counted_that_a_backend_generates_and_also_those_from_its_cache() -> None:
    model = Model()
    compile_blocks(model, backend="aot_eager", device="cpu")
    run(model, 5)
    assert (counters.graphs().unique, counters.graphs().kernels) == (1, 0)
    found = []
    for _ in range(2):
        torch._dynamo.reset()
        counters.reset()
        model = Model()
        compile_blocks(model, backend="inductor", device="cpu")
        run(model, 5)
        found.append(counters.graphs().kernels)
    assert found[0] == found[1] > 0


def test_any_number_of_lengths_makes_two_graphs() -> None:
    model = Model()
    compiled(model)
    run(model, 5, 7, 9, 11, 5, 13)
    assert counters.graphs().unique == 2


def test_block_that_cannot_be_compiled_runs_as_before_alone_and_names_the_reason_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = Model(1, 2)
    result = compiled(model)
    with caplog.at_level(logging.WARNING, "ljperf"):
        run(model, 5, 5)
    assert list(result.uncompiled) == ["layers.1", "layers.2"]
    assert counters.graphs().unique == 1
    lines = [line for line in caplog.messages if "runs uncompiled" in line]
    assert len(lines) == 1
    assert lines[0].startswith("ljperf: layers.1 (Block) runs uncompiled: Unsupported: ")
    assert "graph_break" in lines[0] or "graph break" in lines[0].lower()
    assert "\n" not in lines[0]


def test_other_ranks_say_nothing(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("RANK", "1")
    model = Model(0)
    compiled(model)
    run(model, 5)
    assert not [record for record in caplog.records if record.name == "ljperf"]


def test_backend_that_fails_is_replaced_by_one_without_kernels(caplog: pytest.LogCaptureFixture) -> None:
    def broken(graph: Any, inputs: Any) -> Any:
        raise OSError("no such compiler")

    block = Block()
    function = CompiledFunction(Block.forward, broken)  # type: ignore[arg-type]
    forward = BlockForward(block, "layers.0", function)
    hidden = torch.ones(2, 3, 4)
    assert torch.allclose(forward(hidden), block(hidden))
    assert forward.reason is None
    assert function.backend == "aot_eager"
    assert "no such compiler" in caplog.text


def test_errors_of_the_block_itself_are_the_users() -> None:
    model = Model()
    result = compiled(model)
    with pytest.raises(RuntimeError, match=r"mat1 and mat2|size mismatch|shapes"):
        model.layers[0](torch.ones(2, 3, 5))
    assert "layers.0" in result.uncompiled


def test_undo_gives_the_blocks_their_forward_back() -> None:
    model = Model()
    result = compiled(model)
    result.undo()
    run(model, 5)
    assert counters.graphs().unique == 0


def test_lists_of_single_layers_are_no_blocks() -> None:
    assert [stack.name for stack in stacks_of(Model())] == ["layers"]
    with pytest.raises(NoBlocksError, match="no list of repeated blocks") as raised:
        stacks_of(nn.ModuleList([nn.Linear(2, 2)]))
    assert raised.value.hint


def test_blocks_with_hooks_of_deepspeed_are_too_late() -> None:
    model = Model()
    model.layers[0].ds_id = 3
    with pytest.raises(TooLateError) as raised:
        compiled(model, zero_stage=3)
    assert "before deepspeed.initialize" in (raised.value.hint or "")


def test_blocks_become_leaves_under_stage_3_only() -> None:
    pytest.importorskip("deepspeed")
    third, second = Model(), Model()
    assert compiled(third, zero_stage=3).leaves == ("Block",)
    assert all(layer._z3_leaf for layer in third.layers)
    assert compiled(second, zero_stage=2).leaves == ()
    assert not any(hasattr(layer, "_z3_leaf") for layer in second.layers)


class Watching(OrderedDict):  # type: ignore[type-arg]
    """As DeepSpeed's dictionary of parameters: a subclass with attributes."""


def test_parts_of_a_leaf_get_ordinary_dictionaries_that_still_take_deepspeeds_mark() -> None:
    block = Block()
    weight = block.up.weight
    block.up._parameters = Watching(block.up._parameters)
    block.up._parameters._in_forward = True
    assert not simplify_parameters(block), "only within a leaf"
    block._z3_leaf = True
    assert simplify_parameters(block)
    assert type(block.up._parameters) is OrderedDict
    assert block.up._parameters._in_forward
    assert block.up.weight is weight
    assert not simplify_parameters(block)


def llama(**shape: Any) -> Any:
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "vocab_size": 64}
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(**sizes | shape, num_attention_heads=4, num_key_value_heads=2)
    )


def test_llama_trains_at_any_length_with_two_graphs_and_its_config_keeps_the_cache() -> None:
    model = llama().train()
    result = compiled(model)
    for length in (8, 12, 20, 24):
        ids = torch.zeros(2, length, dtype=torch.long)
        model(ids, labels=ids).loss.backward()
    assert counters.graphs() == counters.Graphs(unique=2, breaks=0)
    assert result.uncompiled == {}
    assert model.config.use_cache is True


def test_generation_with_a_cache_makes_no_graphs_and_the_same_tokens() -> None:
    model = llama().eval()
    ids = torch.arange(6).unsqueeze(0)
    expected = model.generate(ids, max_new_tokens=4, do_sample=False, pad_token_id=0)
    compiled(model)
    assert torch.equal(model.generate(ids, max_new_tokens=4, do_sample=False, pad_token_id=0), expected)
    assert counters.graphs().unique == 0


def test_attention_of_a_block_with_experts_is_compiled_though_its_routing_cannot_be() -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "vocab_size": 64}
    config = transformers.MixtralConfig(**sizes, num_attention_heads=4, num_key_value_heads=2, num_local_experts=2)
    model = transformers.MixtralForCausalLM(config).train()
    result = compiled(model)
    ids = torch.zeros(2, 8, dtype=torch.long)
    model(ids, labels=ids).loss.backward()
    assert not any("self_attn" in name for name in result.uncompiled)
    # Later Transformers keep all experts in one tensor: a block without alternatives to choose from, compiled whole.
    whole = not any(isinstance(module, nn.ModuleList) for module in model.model.layers[0].modules())
    assert whole or any(block.name.endswith("self_attn") for block in result.blocks)
