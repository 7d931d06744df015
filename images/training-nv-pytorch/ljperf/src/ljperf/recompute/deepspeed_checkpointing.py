"""DeepSpeed's own checkpointing, as pipelines and loops written by hand call it: the first k calls recompute.

A call is a layer, or the few that the caller puts together; where a forward begins is told by DeepSpeed's engine. What
is called without an engine, or with activations partitioned or kept in one buffer, recomputes as before.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ljperf.errors import LjperfError
from ljperf.recompute import engines
from ljperf.recompute.choice import LAYERS, agreed, planned, told_layers
from ljperf.recompute.layers import EVERY, Asked
from ljperf.recompute.live import DoubtError

FUNCTIONS = ("checkpoint", "non_reentrant_checkpoint")
_LAID_OUT = ("PARTITION_ACTIVATIONS", "CONTIGUOUS_CHECKPOINTING")  # they count on each layer's call


def patch(module: ModuleType) -> None:
    """Replace both functions. Raises TypeError, with nothing changed, if one of them takes something else."""
    originals = {name: getattr(module, name) for name in FUNCTIONS}
    for name, original in originals.items():
        if list(inspect.signature(original).parameters) != ["function", "args"]:
            raise TypeError(f"{name} is not called with a function and its arguments here")
    calls = Calls(module)
    engines.at_forward(calls.begin)
    for name, original in originals.items():
        setattr(module, name, first_calls_only(original, calls))


class Calls:
    """The calls of the forward that is under way, counted; and k, chosen at the first of them."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.engine: Any | None = None
        self.made = 0
        self.first: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        """By engine: an actor and a critic are of different sizes."""

    def begin(self, engine: Any) -> None:
        """An engine's forward begins."""
        self.engine, self.made = engine, 0

    def recomputes(self, args: tuple[Any, ...], reentrant: bool) -> bool:
        """Does the call that is made now recompute? Counts it."""
        import torch

        if self.engine is None or not torch.is_grad_enabled():
            return True
        if self.engine not in self.first:
            self.first[self.engine] = self.chosen(args, reentrant)
        self.made += 1
        return self.made <= self.first[self.engine]

    def chosen(self, args: tuple[Any, ...], reentrant: bool) -> int:
        """So many calls of each forward recompute, on all ranks; any doubt is one line, and all of them do."""
        try:
            k, why = self.wanted(args, reentrant)
        except LjperfError as doubt:
            k, why = None, doubt.message
        except Exception as error:
            k, why = None, f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        found = agreed(k, None, why)
        return EVERY if found is None else found

    def wanted(self, args: tuple[Any, ...], reentrant: bool) -> tuple[int, str]:
        """This rank's number, and the reason. Raises an LjperfError in doubt."""
        laid_out = [name.lower() for name in _LAID_OUT if getattr(self.module, name, False)]
        if laid_out:
            raise DoubtError(f"{' and '.join(laid_out)} wants every layer to recompute")
        if reentrant and not any(getattr(value, "requires_grad", False) for value in args):
            # Then recomputed layers get no gradients: an error if all are, but silence if kept layers have some.
            raise DoubtError("its first layer's input requires no gradient")
        told = told_layers(None)
        if told is not None:
            return told, LAYERS
        assert self.engine is not None
        model = self.engine.module
        layers = getattr(getattr(model, "config", None), "num_hidden_layers", None)
        if not isinstance(layers, int):
            raise DoubtError(f"its model tells no config; {LAYERS}=k says how many")
        return planned(model, self.engine, layers, _asked(args))


def _asked(args: tuple[Any, ...]) -> Asked:
    hidden = args[0] if args else None
    if getattr(hidden, "ndim", None) != 3:
        raise DoubtError("its layers do not take hidden states first")
    assert hidden is not None
    return Asked(hidden.shape[0], hidden.shape[1], hidden.shape[2], hidden.requires_grad)


def first_calls_only(original: Callable[..., Any], calls: Calls) -> Callable[..., Any]:
    """The checkpoint function that recomputes the first k calls of each forward, and runs the others as they are."""

    reentrant = original.__name__ == FUNCTIONS[0]

    @functools.wraps(original)
    def checkpoint(function: Callable[..., Any], *args: Any) -> Any:
        if calls.recomputes(args, reentrant):
            return original(function, *args)
        found = function(*args)
        # As DeepSpeed gives results: one by itself, several as a tuple.
        if not isinstance(found, (tuple, list)):
            return found
        return found[0] if len(found) == 1 else tuple(found)

    return checkpoint
