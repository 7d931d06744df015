"""DeepSpeed's dictionary of parameters does not stay in a compiled block: PyTorch 2.5 could not compile it."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch
from ljperf.compiling.forward import BlockForward, CompiledFunction
from torch import nn


class ZeROOrderedDict(OrderedDict[str, Any]):
    """As DeepSpeed's: it is asked at every look-up."""

    def __getitem__(self, key: str) -> Any:
        raise AssertionError(f"{key} was looked up in it")


def test_a_compiled_block_has_plain_dictionaries_with_the_same_parameters() -> None:
    block = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    before = dict(block.named_parameters())
    for module in block.modules():
        module._parameters = ZeROOrderedDict(module._parameters)  # type: ignore[assignment]
    function = CompiledFunction(type(block).forward, "eager")
    out = BlockForward(block, "block", function)(torch.ones(1, 4))
    assert out.shape == (1, 4)
    assert {type(module._parameters) for module in block.modules()} == {OrderedDict}
    assert {name: id(value) for name, value in block.named_parameters()} == {
        name: id(value) for name, value in before.items()
    }
    block._parameters._in_forward = True  # as DeepSpeed's engine sets it
