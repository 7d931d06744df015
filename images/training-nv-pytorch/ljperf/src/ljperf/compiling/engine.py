"""Into `deepspeed.initialize`: blocks are compiled before it under ZeRO-3, the engine after it otherwise."""

from __future__ import annotations

import functools
import inspect
import os
from types import ModuleType
from typing import Any

from ljperf.compiling.backends import training_device, usable_backend
from ljperf.compiling.blocks import Compiled, compile_blocks
from ljperf.compiling.cache import keep_cache
from ljperf.compiling.notice import reason_of, say
from ljperf.compiling.recomputation import let_inputs_have_gradients, make_reentrant
from ljperf.compiling.wish import Wish, dynamo_plugin, stage_of, uses_deepcompile, wish_of
from ljperf.errors import LjperfError


def patch(module: ModuleType) -> None:
    """Wrap `deepspeed.initialize`; without a wish for compilation at the call it does what it did."""
    original = module.initialize
    signature = inspect.signature(original)

    @functools.wraps(original)
    def initialize(*args: Any, **kwargs: Any) -> Any:
        wish = wish_of(os.environ)
        if wish is None:
            return original(*args, **kwargs)
        given = signature.bind_partial(*args, **kwargs).arguments
        config = _config_of(given)
        blocks = _before(given.get("model"), config, wish)
        result = original(*args, **kwargs)
        _after(result[0], config, wish, blocks)
        return result

    module.initialize = initialize  # type: ignore[attr-defined]


def _config_of(given: dict[str, Any]) -> object:
    found = (given.get("config"), given.get("config_params"), getattr(given.get("args"), "deepspeed_config", None))
    return next((config for config in found if config is not None), None)


def _before(model: Any, config: object, wish: Wish) -> Compiled | None:
    """Under ZeRO-3, compile the blocks; None if that is not our part, or cannot be (then a line says why)."""
    if model is None or stage_of(config) != 3 or uses_deepcompile(config):
        return None
    try:
        let_inputs_have_gradients(model)
        compiled = compile_blocks(model, backend=wish.backend, zero_stage=3, options=_options(wish))
        make_reentrant(model)
    except LjperfError as error:
        say(f"the blocks are not compiled: {error.message}")
        return None
    except Exception as error:  # whatever it is, training goes on as it would have without us
        say(f"the blocks are not compiled: {reason_of(error)}")
        return None
    say(f"{len(compiled.blocks)} blocks are compiled ({compiled.backend}), each gathered as a whole by ZeRO-3")
    return compiled


def _options(wish: Wish) -> dict[str, Any]:
    mode = wish.options.get("mode")
    if mode not in ("reduce-overhead", "max-autotune"):
        return wish.options
    # CUDA graphs replay addresses, but ZeRO-3 gathers weights to new ones at each step.
    without = {"reduce-overhead": "default", "max-autotune": "max-autotune-no-cudagraphs"}[mode]
    say(f"mode {mode} is {without} under ZeRO-3: CUDA graphs need weights that stay where they are")
    return wish.options | {"mode": without}


def _after(engine: Any, config: object, wish: Wish, blocks: Compiled | None) -> None:
    if blocks is not None:
        engine.ljperf_compiled = blocks
        _keep_from_compiling_again(engine, wish)
    elif wish.by == "LJ_COMPILE" and (stage_of(config) != 3 or uses_deepcompile(config)):
        _compile_whole(engine, wish)


def _keep_from_compiling_again(engine: Any, wish: Wish) -> None:
    """Accelerate compiles what `initialize` returns, hooks and all, and each hook breaks the graph."""

    def compile(*_: Any, **__: Any) -> None:
        if wish.by == "LJ_COMPILE":  # Accelerate's call is expected; a loop's own is a surprise to its author
            say("engine.compile has nothing to do: the blocks are compiled already")

    engine.compile = compile
    plugin = dynamo_plugin()
    if getattr(plugin, "use_regional_compilation", False):
        plugin.use_regional_compilation = False  # that way goes past engine.compile


def _compile_whole(engine: Any, wish: Wish) -> None:
    """Without partitioned weights there are no hooks in the way, and the whole model is one graph."""
    keep_cache()
    usable = usable_backend(wish.backend, training_device())
    if usable.why_not:
        say(f"the model is compiled by {usable.name}, which makes no faster kernels: {usable.why_not}")
    try:
        engine.compile(backend=usable.name)
    except Exception as error:  # a version that cannot: training goes on in eager mode
        say(f"the model is not compiled: {reason_of(error)}")
