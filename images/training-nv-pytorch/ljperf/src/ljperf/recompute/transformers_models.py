"""Transformers: whenever a model switches recomputation on, only its first k layers do.

Patched is the class, before any model or Trainer exists: `PreTrainedModel._set_gradient_checkpointing`, which all ways
to switch it on go through, from 4.48 to the `activation_checkpointing_enable` of 5.24.
"""

from __future__ import annotations

import functools
import inspect
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ljperf.recompute.choice import choose
from ljperf.recompute.layers import NoStackError, dispatch, stack_of
from ljperf.startup import say

if TYPE_CHECKING:
    from torch import nn

KNOWN = ({"self", "enable", "gradient_checkpointing_func"}, {"every_n_layers"})  # needed, allowed


def patch(module: ModuleType) -> None:
    """Wrap the method. Raises TypeError, with nothing changed, if its signature is another one."""
    original = module.PreTrainedModel._set_gradient_checkpointing
    parameters = set(inspect.signature(original).parameters)
    needed, allowed = KNOWN
    if not needed <= parameters <= needed | allowed:
        raise TypeError("this version switches recomputation on in a way that is not known here")

    @functools.wraps(original)
    def first_layers_only(self: Any, *args: Any, **kwargs: Any) -> Any:
        outcome = original(self, *args, **kwargs)
        switched = inspect.signature(original).bind(self, *args, **kwargs)
        switched.apply_defaults()
        if switched.arguments["enable"]:
            select(self, switched.arguments["gradient_checkpointing_func"], switched.arguments.get("every_n_layers", 1))
        return outcome

    module.PreTrainedModel._set_gradient_checkpointing = first_layers_only


def select(model: nn.Module, function: Any, every: int) -> None:
    """Have k chosen in the first training forward; with any doubt all stays as it was just switched on."""
    if every != 1:
        say(f"every {every}th layer recomputes, as was asked for")
        return
    try:
        reentrant = reentrant_of(function)
        layers = stack_of(model)
    except NoStackError as doubt:
        say(f"all layers recompute: {type(model).__name__}: {doubt.message}")
        return
    dispatch(model, layers, lambda asked: choose(model, len(layers), reentrant, asked))


def reentrant_of(function: Any) -> bool:
    """Transformers' own checkpoint function, and its flag. Raises NoStackError for any other function."""
    from torch.utils.checkpoint import checkpoint

    if function is checkpoint:
        return True
    if not isinstance(function, functools.partial) or function.func is not checkpoint:
        raise NoStackError("it brings a checkpoint function of its own")
    return bool(function.keywords.get("use_reentrant", True))
