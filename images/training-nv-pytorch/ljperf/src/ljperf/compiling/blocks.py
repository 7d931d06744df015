"""The public way in: compile a model's blocks, with one gather for a block under ZeRO-3."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ljperf.compiling.attention import keep_causal_a_constant
from ljperf.compiling.backends import training_device, usable_backend
from ljperf.compiling.cache import keep_cache
from ljperf.compiling.finding import Stack, has_experts, has_parameters, stacks_of
from ljperf.compiling.forward import BlockForward, CompiledFunction
from ljperf.compiling.notice import say
from ljperf.errors import LjperfError

if TYPE_CHECKING:
    from torch import nn


class TooLateError(LjperfError):
    """DeepSpeed has put its hooks into the blocks already."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """What was compiled, and what has become of it."""

    blocks: tuple[BlockForward, ...]
    backend: str
    leaves: tuple[str, ...]
    """Classes that ZeRO-3 gathers as a whole."""
    hooks: tuple[Any, ...] = ()

    @property
    def uncompiled(self) -> Mapping[str, str]:
        """Blocks that fell back to eager mode so far, and why."""
        return {block.name: block.reason for block in self.blocks if block.reason}

    def undo(self) -> None:
        """Give the blocks their own forward back; leaves stay, since DeepSpeed's hooks are placed by them."""
        for block in self.blocks:
            block.block.__dict__.pop("forward", None)
        for hook in self.hooks:
            hook.remove()


def compile_blocks(
    model: nn.Module,
    *,
    backend: str = "inductor",
    zero_stage: int | None = None,
    device: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Compiled:
    """Compile the forward of each repeated block of the model, in place; call it before `deepspeed.initialize`.

    Under ZeRO-3 each block becomes a leaf module, so that its parts have no hooks that would break the graph; those
    of the block itself stay outside, as does recomputation. `options` are further arguments of torch.compile.
    Raises NoBlocksError if there are no repeated blocks, TooLateError if DeepSpeed has hooked them.
    """
    stacks = stacks_of(model)
    targets = tuple(_targets(stacks))
    if zero_stage == 3 and any(hasattr(module, "ds_id") for _, module in targets):
        raise TooLateError(
            "the blocks have DeepSpeed's hooks already, which would break their graphs",
            hint="call compile_blocks before deepspeed.initialize, or set LJ_COMPILE=1",
        )
    keep_cache()
    keep_causal_a_constant()
    usable = usable_backend(backend, device or training_device())
    if usable.why_not:
        say(f"blocks are compiled by {usable.name}, which makes no faster kernels: {usable.why_not}")
    leaves = _make_leaves(model, targets) if zero_stage == 3 else ()
    kept = dict(options or {}) if usable.name == backend else {}
    return Compiled(
        blocks=tuple(_install(targets, usable.name, kept)),
        backend=usable.name,
        leaves=leaves,
        hooks=tuple(filter(None, (_without_cache(stack.owner) for stack in stacks))),
    )


def _targets(stacks: tuple[Stack, ...]) -> Iterator[tuple[str, nn.Module]]:
    """The modules to compile, by name: a block, or the parts of one with experts, so that its attention is compiled."""
    for stack in stacks:
        for index, block in enumerate(stack.blocks):
            name = f"{stack.name}.{index}"
            if has_experts(block):
                yield from ((f"{name}.{at}", part) for at, part in block.named_children() if has_parameters(part))
            else:
                yield name, block


def _make_leaves(model: nn.Module, targets: tuple[tuple[str, nn.Module], ...]) -> tuple[str, ...]:
    from deepspeed.utils import set_z3_leaf_modules

    classes = list(dict.fromkeys(type(module) for _, module in targets))
    set_z3_leaf_modules(model, classes)
    return tuple(kind.__name__ for kind in classes)


def _install(
    targets: tuple[tuple[str, nn.Module], ...], backend: str, options: dict[str, Any]
) -> Iterator[BlockForward]:
    shared: dict[Callable[..., Any], CompiledFunction] = {}
    for name, module in targets:
        function = _forward_of(module)
        compiled = shared.setdefault(function, CompiledFunction(function, backend, options))
        forward = BlockForward(module, name, compiled)
        module.forward = forward
        yield forward


def _forward_of(module: nn.Module) -> Callable[..., Any]:
    """The forward as a function of the module and its arguments; one that was set on the instance is its own."""
    own = module.__dict__.get("forward")
    if own is None:
        function: Callable[..., Any] = type(module).forward
        return function
    if isinstance(own, BlockForward):
        return own.function.function

    def forward(_: nn.Module, *args: Any, **kwargs: Any) -> Any:
        return own(*args, **kwargs)

    return forward


def _without_cache(owner: nn.Module) -> Any:
    """Keep training from filling a key-value cache nobody reads: it would make a graph for each layer.

    Transformers fills one whenever `config.use_cache` holds, as it does by default. The config is left as it is, since
    it is saved with the model.
    """
    if "use_cache" not in inspect.signature(owner.forward).parameters:
        return None

    def hook(module: nn.Module, args: Any, kwargs: dict[str, Any]) -> Any:
        asked = kwargs.get("use_cache") is not None or kwargs.get("past_key_values") is not None
        return None if asked or not module.training else (args, kwargs | {"use_cache": False})

    return owner.register_forward_pre_hook(hook, with_kwargs=True)
