"""Where a model's repeated blocks are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ljperf.errors import LjperfError

if TYPE_CHECKING:
    from torch import nn

# Attributes under which FSDP1 and PyTorch's checkpoint wrapper keep the module they wrap.
WRAPPED = ("_fsdp_wrapped_module", "_checkpoint_wrapped_module")


class NoBlocksError(LjperfError):
    """The model has no list of repeated blocks."""


@dataclass(frozen=True, slots=True)
class Stack:
    """A list of blocks, and the module whose forward runs them."""

    owner: nn.Module
    name: str
    """The list's name within the model: model.layers."""
    blocks: tuple[nn.Module, ...]


def stacks_of(model: nn.Module) -> tuple[Stack, ...]:
    """Find each outermost ModuleList whose elements are blocks: modules with parameters in at least two children.

    Lists within blocks (experts) are part of their block; a list of single layers or of heads is none.
    Raises NoBlocksError if there is no such list.
    """
    found = tuple(_stacks(model, ""))
    if not found:
        raise NoBlocksError(
            f"{type(model).__name__} has no list of repeated blocks, so there is nothing to compile one by one",
            hint="compile its parts with torch.compile, or hand in the model that holds the ModuleList of its layers",
        )
    return found


def _stacks(module: nn.Module, prefix: str) -> Iterator[Stack]:
    from torch import nn

    for name, child in module.named_children():
        path = f"{prefix}{name}"
        if isinstance(child, nn.ModuleList) and len(child) and all(map(_is_block, child)):
            yield Stack(owner=module, name=path, blocks=tuple(unwrapped(block) for block in child))
        else:
            yield from _stacks(child, f"{path}.")


def _is_block(module: nn.Module) -> bool:
    return sum(has_parameters(child) for child in unwrapped(module).children()) >= 2


def has_parameters(module: nn.Module) -> bool:
    """Does it, or anything in it, have parameters?"""
    return next(module.parameters(), None) is not None


def has_experts(block: nn.Module) -> bool:
    """Does it hold a list of alternatives, of which the tokens choose? Its graph would depend on the tokens."""
    from torch import nn

    return any(isinstance(module, nn.ModuleList) and len(module) > 1 for module in block.modules())


def unwrapped(module: nn.Module) -> nn.Module:
    """The module within FSDP1's and the checkpoint wrapper: hooks and recomputation stay outside of its graph."""
    for name in WRAPPED:
        inner = module._modules.get(name)
        if inner is not None:
            return unwrapped(inner)
    return module
