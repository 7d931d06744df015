"""A forward that is compiled as one graph, or else runs as it was written."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ljperf.compiling.backends import WITHOUT_COMPILER
from ljperf.compiling.notice import reason_of, say
from ljperf.compiling.parameters import simplify_parameters

if TYPE_CHECKING:
    import torch
    from torch import nn

# Per function: gradients or not, training or not, mask or not, autocast or not, each at a fixed and a dynamic length.
RECOMPILES = 32


@dataclass(slots=True)
class CompiledFunction:
    """One forward function, compiled once for all blocks that share it."""

    function: Callable[..., Any]
    backend: str
    options: dict[str, Any] = field(default_factory=dict)
    """Further arguments of torch.compile, such as `mode`."""
    length: int | None = None
    """The sequence length seen first; 0 once there was another."""
    needs_simple_parameters: bool = False
    """This Dynamo could trace no block before its parameters' dictionaries were simplified."""
    _compiled: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it compiled. Raises what Dynamo raises if it cannot be one graph; nothing has run then."""
        if self._compiled is None:
            self._compiled = _compile(self.function, self.backend, self.options)
        self._mark_lengths(args, kwargs)
        return self._compiled(*args, **kwargs)

    def demote(self) -> None:
        """Compile without generating kernels from now on."""
        self.backend, self.options, self._compiled = WITHOUT_COMPILER, {}, None

    def _mark_lengths(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Let the sequence length be a variable of the graph, from the second length on.

        A graph for one length is the fastest, and all that most trainings need. The second length makes one more,
        for all lengths: its first argument's dimension 1, and whatever else is as long.
        """
        tensors = tuple(_tensors((*args, *kwargs.values())))
        length = next((tensor.shape[1] for tensor in tensors if tensor.dim() >= 2), 1)
        if length <= 1:  # Dynamo treats 0 and 1 as constants
            return
        self.length = length if self.length in (None, length) else 0
        if self.length == 0:
            _mark(tensors, length)


def _mark(tensors: tuple[torch.Tensor, ...], length: int) -> None:
    import torch._dynamo

    for index, tensor in enumerate(tensors):
        dimensions = [1] if index == 0 else [at for at, size in enumerate(tensor.shape) if size == length]
        for dimension in dimensions:
            torch._dynamo.maybe_mark_dynamic(tensor, dimension)


def _tensors(values: tuple[Any, ...]) -> Iterator[torch.Tensor]:
    import torch

    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from _tensors(tuple(value))


def _compile(function: Callable[..., Any], backend: str, options: dict[str, Any]) -> Callable[..., Any]:
    import torch

    _allow_recompiles()
    compiled: Callable[..., Any] = torch.compile(function, backend=backend, fullgraph=True, **options)
    return compiled


def _allow_recompiles() -> None:
    import torch._dynamo.config as config

    # torch 2.6 renamed cache_size_limit to recompile_limit; the older name may still be there, as an alias.
    name = "recompile_limit" if hasattr(config, "recompile_limit") else "cache_size_limit"
    setattr(config, name, max(getattr(config, name), RECOMPILES))


class BlockForward:
    """What a block has as `forward`: compiled, until that fails; then as it was, for this block alone."""

    def __init__(self, block: nn.Module, name: str, function: CompiledFunction) -> None:
        self.block = block
        self.name = name
        self.function = function
        self.reason: str | None = None
        """Why it runs uncompiled; None while it is compiled."""
        functools.update_wrapper(self, function.function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the block's forward."""
        import torch

        # Within another graph this is a part of that; and a key-value cache would make a graph for each layer.
        if self.reason or torch.compiler.is_compiling() or _has_cache(args, kwargs):
            return self.function.function(self.block, *args, **kwargs)
        if self.function.needs_simple_parameters:
            simplify_parameters(self.block)
        try:
            return self.function(self.block, *args, **kwargs)
        except _compile_errors() as error:
            return self._after(error, *args, **kwargs)

    def _after(self, error: Exception, *args: Any, **kwargs: Any) -> Any:
        if simplify_parameters(self.block):
            self.function.needs_simple_parameters = True
            return self(*args, **kwargs)
        reason = reason_of(error)
        kind = type(self.block).__name__
        if _is_backend_error(error) and self.function.backend != WITHOUT_COMPILER:
            say(f"{self.function.backend} cannot compile {kind}, so {WITHOUT_COMPILER} does: {reason}")
            self.function.demote()
            return self(*args, **kwargs)
        self.reason = reason
        say(f"{self.name} ({kind}) runs uncompiled: {reason}", key=f"{kind} {reason}")
        return self.function.function(self.block, *args, **kwargs)


def _has_cache(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return any(hasattr(value, "get_seq_length") for value in (*args, *kwargs.values()))


def _is_backend_error(error: Exception) -> bool:
    from torch._dynamo.exc import BackendCompilerFailed

    return isinstance(error, BackendCompilerFailed)


@functools.cache
def _compile_errors() -> tuple[type[Exception], ...]:
    """What Dynamo and its backends raise before anything has run; the limit's errors differ between versions."""
    from torch._dynamo import exc

    names = ("TorchDynamoException", "FailOnRecompileLimitHit", "FailOnCacheLimitHit")
    return tuple(getattr(exc, name) for name in names if hasattr(exc, name))
