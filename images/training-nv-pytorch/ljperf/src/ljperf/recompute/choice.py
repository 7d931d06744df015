"""How many layers recompute: what the user says, else the smallest number that the plan finds to fit; on all ranks one.

Any doubt is one line on rank 0, and all layers recompute, as they would without us.
"""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, Any

from ljperf.errors import LjperfError
from ljperf.recompute.agreement import PATIENCE_S, agree
from ljperf.recompute.engines import engine_of
from ljperf.recompute.live import DoubtError, device_here, in_group, setup_of
from ljperf.startup import say

if TYPE_CHECKING:
    from torch import nn

    from ljperf.recompute.layers import Asked

LAYERS = "CHECKPOINT_OPTIMIZATION_LAYERS"
WAIT = "CHECKPOINT_OPTIMIZATION_WAIT_S"  # for the slowest rank

_choices = itertools.count()  # the same on all ranks, as they run one program


def choose(model: nn.Module, layers: int, reentrant: bool, asked: Asked) -> int | None:
    """So many of the first layers recompute, on every rank; None: all of them. Never raises."""
    try:
        k, why = wanted(model, layers, reentrant, asked)
    except LjperfError as doubt:
        k, why = None, doubt.message + (f" ({doubt.hint})" if doubt.hint else "")
    except Exception as error:
        k, why = None, f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return agreed(k, layers, why)


def wanted(model: nn.Module, layers: int, reentrant: bool, asked: Asked) -> tuple[int, str]:
    """This rank's number, and the reason. Raises an LjperfError in doubt."""
    engine = engine_of(model)
    refuse(model, engine, reentrant, asked)
    told = told_layers(layers)
    if told is not None:
        return told, LAYERS
    return planned(model, engine, layers, asked)


def told_layers(layers: int | None) -> int | None:
    """What LAYERS says, at most `layers`; None if unset. Raises DoubtError if it is no number."""
    text = os.environ.get(LAYERS, "").strip()
    if not text:
        return None
    if not text.isdecimal():
        raise DoubtError(f"{LAYERS}={text} is no number of layers")
    return int(text) if layers is None else min(int(text), layers)


def refuse(model: nn.Module, engine: Any | None, reentrant: bool, asked: Asked) -> None:
    """Raise DoubtError where choosing some layers would do harm, or hide harm."""
    if asked.width == 0:
        raise DoubtError("its layers do not take hidden states first")
    frozen = any(not parameter.requires_grad for parameter in model.parameters())
    zero3 = engine is not None and engine.zero_optimization_stage() == 3
    if frozen and zero3 and not reentrant:
        # Recomputing sees empty parameters there; Transformers and DeepSpeed have open reports of it.
        raise DoubtError("frozen parameters under ZeRO-3 need use_reentrant=True")
    if reentrant and not asked.requires_grad:
        # Then recomputed layers get no gradients: an error if all are, but silence if kept layers have some.
        raise DoubtError("its first layer's input requires no gradient (enable_input_require_grads)")


def planned(model: nn.Module, engine: Any | None, layers: int, asked: Asked) -> tuple[int, str]:
    """The smallest number of first layers that fits this device, by the plan."""
    from ljperf.memory.recommend import recommend
    from ljperf.models.from_config import shape_of

    device = device_here()
    shape = shape_of(model.config)
    if shape.layers != layers:
        raise DoubtError(f"its config tells {shape.layers} layers, but it has {layers}")
    recommendation = recommend(shape, setup_of(model, engine, asked), device)
    return min(recommendation.k, layers), recommendation.why


def agreed(k: int | None, layers: int | None, why: str) -> int | None:
    """All ranks' number for this rank's: the largest. One line says it. Without a process group it is our own."""
    name = f"ljperf/recompute/{next(_choices)}"
    of = "" if layers is None else f" of {layers}"
    if not in_group():
        say(f"all layers recompute: {why}" if k is None else f"the first {k}{of} layers recompute: {why}")
        return k
    try:
        agreed_k, heard = agree_in_group(name, k)
    except Exception as error:  # the others end their wait, and recompute all layers too
        say(f"all layers recompute: no store to agree in: {type(error).__name__}")
        return None
    if heard:
        reason = why if k == agreed_k else "other ranks need it"
        say(
            f"all layers recompute: {reason}"
            if agreed_k is None
            else f"the first {agreed_k}{of} layers recompute: {reason}"
        )
    return agreed_k


def agree_in_group(name: str, k: int | None) -> tuple[int | None, bool]:
    """`agree` over the default group's store; the first rank to see that one was not heard says so."""
    import torch.distributed
    from torch.distributed.distributed_c10d import _get_default_store

    rank, ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
    store: Any = _get_default_store()
    answer, heard = agree(store, rank, ranks, name, k, float(os.environ.get(WAIT) or PATIENCE_S))
    if not heard and store.add(f"{name}/said", 1) == 1:
        import sys

        sys.stderr.write("ljperf: all layers recompute: some ranks lack CHECKPOINT_OPTIMIZATION, or are late\n")
    return answer, heard
