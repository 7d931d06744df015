"""Into Transformers' Trainer: `torch_compile=True` also where no compiler is, and with a cache that stays."""

from __future__ import annotations

import functools
import inspect
import os
from types import ModuleType
from typing import Any

from ljperf.compiling.backends import training_device, usable_backend
from ljperf.compiling.cache import keep_cache
from ljperf.compiling.notice import reason_of, say

BACKEND = "ACCELERATE_DYNAMO_BACKEND"


def patch(module: ModuleType) -> None:
    """Wrap `Trainer.__init__`. What is compiled, and how, is Accelerate's matter, or `engine`'s under ZeRO-3."""
    original = module.Trainer.__init__
    signature = inspect.signature(original)

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            arguments = signature.bind_partial(self, *args, **kwargs).arguments.get("args")
            if getattr(arguments, "torch_compile", False):
                _prepare(arguments)
        except Exception as error:  # an odd Trainer is upstream's matter
            say(f"torch_compile stays as it was: {reason_of(error)}")
        original(self, *args, **kwargs)

    module.Trainer.__init__ = __init__


def _prepare(arguments: Any) -> None:
    keep_cache()
    usable = usable_backend(arguments.torch_compile_backend or "inductor", training_device())
    if usable.why_not is None:
        return
    say(f"torch_compile uses {usable.name}, which makes no faster kernels: {usable.why_not}")
    arguments.torch_compile_backend = usable.name
    os.environ[BACKEND] = usable.name  # TrainingArguments hand it to Accelerate this way
