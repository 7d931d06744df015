"""DeepSpeed's dictionary of parameters does not stay in a leaf block: Dynamo of PyTorch 2.5 finds nothing in it."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest
import torch
from ljperf.compiling.parameters import simplify_parameters
from torch import nn


class ZeROOrderedDict(OrderedDict[str, Any]):
    """As DeepSpeed's: it is asked at every look-up, and has marks of its own."""

    def __getitem__(self, key: str) -> Any:
        raise AssertionError(f"{key} was looked up in it")


@pytest.fixture
def block() -> nn.Module:
    """A block whose dictionaries are of that class."""
    found = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    for module in found.modules():
        module._parameters = ZeROOrderedDict(module._parameters)  # type: ignore[assignment]
        module._parameters._in_forward = True  # type: ignore[attr-defined]
    return found


def test_a_leaf_gets_ordinary_dictionaries_with_the_same_parameters_and_marks(block: nn.Module) -> None:
    block._z3_leaf = True
    before = [id(value) for value in block.parameters()]
    assert simplify_parameters(block)
    assert not simplify_parameters(block), "there is nothing left to do"
    assert {type(module._parameters) for module in block.modules()} == {OrderedDict}
    assert all(module._parameters._in_forward for module in block.modules())  # type: ignore[union-attr]
    assert [id(value) for value in block.parameters()] == before
    assert block(torch.ones(1, 4)).shape == (1, 4)


def test_what_is_gathered_part_by_part_keeps_its_own(block: nn.Module) -> None:
    assert not simplify_parameters(block)
    assert {type(module._parameters) for module in block.modules()} == {ZeROOrderedDict}
