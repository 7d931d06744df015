"""What must hold around a compiled leaf block for its gradients to be right."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ljperf.compiling.notice import say
from ljperf.errors import LjperfError

if TYPE_CHECKING:
    from torch import nn

ATTRIBUTE = "_gradient_checkpointing_func"


class FrozenInputError(LjperfError):
    """No gradient reaches the first block's input, which a leaf block needs."""


def make_reentrant(model: nn.Module) -> int:
    """Turn Transformers' non-reentrant checkpointing into reentrant; return in how many modules.

    Under ZeRO-3 a compiled block saves other tensors when it is recomputed than in its forward, and the non-reentrant
    form raises CheckpointError.
    """
    changed = sum(_change(module) for module in model.modules())
    if changed:
        say("checkpointing is reentrant instead of non-reentrant, which fails with compiled blocks under ZeRO-3")
    return changed


def _change(module: nn.Module) -> bool:
    function = getattr(module, ATTRIBUTE, None)
    if _is_non_reentrant(function):
        setattr(module, ATTRIBUTE, _reentrant(function))
        return True
    # A dispatcher, which recomputes some layers only, keeps what it calls for those.
    inner = getattr(function, "checkpoint", None)
    if function is not None and _is_non_reentrant(inner):
        function.checkpoint = _reentrant(inner)
        return True
    return False


def _is_non_reentrant(function: Any) -> bool:
    return isinstance(function, functools.partial) and function.keywords.get("use_reentrant") is False


def _reentrant(function: Any) -> functools.partial[Any]:
    # The other keywords belong to the non-reentrant form alone.
    kept = {key: value for key, value in function.keywords.items() if key == "preserve_rng_state"}
    return functools.partial(function.func, *function.args, **kept, use_reentrant=True)


def let_inputs_have_gradients(model: nn.Module) -> None:
    """Let the embedding's output require a gradient, if its weights are frozen (adapters).

    Reentrant checkpointing runs no backward without, and ZeRO-3 reduces a leaf's gradients when that of its input is
    there. Raises FrozenInputError if the embedding cannot be found.
    """
    if all(parameter.requires_grad for parameter in model.parameters()):
        return
    embedding = getattr(model, "get_input_embeddings", lambda: None)()
    if embedding is None:
        raise FrozenInputError(
            "some parameters are frozen, and without get_input_embeddings the first block's input cannot be made to"
            " require a gradient",
            hint="give the model get_input_embeddings, or train all parameters",
        )
    if not any(parameter.requires_grad for parameter in embedding.parameters()):
        embedding.register_forward_hook(_require_gradient)


def _require_gradient(_: nn.Module, __: Any, output: Any) -> None:
    if output.is_leaf and not output.requires_grad and output.is_floating_point():
        output.requires_grad_(True)
