"""Which DeepSpeed engine trains a model: engines are remembered as they are made, and forgotten with their users."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

_seen: weakref.WeakSet[Any] = weakref.WeakSet()
_at_forward: list[Callable[[Any], None]] = []


def patch(module: ModuleType) -> None:
    """Remember every engine that `deepspeed.runtime.engine` makes from now on, and tell where its forwards begin."""
    original, forward = module.DeepSpeedEngine.__init__, module.DeepSpeedEngine.forward
    if "model" not in inspect.signature(original).parameters:
        raise TypeError("DeepSpeedEngine takes no model")

    @functools.wraps(original)
    def remembered(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        _seen.add(self)

    @functools.wraps(forward)
    def told(self: Any, *args: Any, **kwargs: Any) -> Any:
        for begin in _at_forward:
            begin(self)
        return forward(self, *args, **kwargs)

    module.DeepSpeedEngine.__init__ = remembered
    module.DeepSpeedEngine.forward = told


def at_forward(begin: Callable[[Any], None]) -> None:
    """Have a function called with an engine whose forward begins."""
    _at_forward.append(begin)


def engines() -> tuple[Any, ...]:
    """All engines that are in use."""
    return tuple(_seen)


def engine_of(model: nn.Module) -> Any | None:
    """The engine that trains this model, perhaps as a part of a larger one; None if there is none."""
    for engine in engines():
        if any(module is model for module in engine.module.modules()):
            return engine
    return None
