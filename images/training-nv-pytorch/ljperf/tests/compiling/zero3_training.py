"""Two ranks train a small Llama under ZeRO-3 in several ways, one after the other; rank 0 prints what it counted."""

from __future__ import annotations

import copy
import json
import logging
import os
import sys
from collections.abc import Callable
from typing import Any

import deepspeed
import torch
from ljperf.compiling import counters, engine, notice
from torch.multiprocessing.reductions import StorageWeakRef
from transformers import LlamaConfig, LlamaForCausalLM

LAYERS = 3
CONFIG = {
    "train_micro_batch_size_per_gpu": 2,
    "bf16": {"enabled": True},
    "zero_optimization": {
        "stage": 3,
        "stage3_param_persistence_threshold": 0,
        "stage3_max_reuse_distance": 0,
        "stage3_prefetch_bucket_size": 0,
    },
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-2, "torch_adam": True}},
}
LENGTHS = {"fixed": (16, 16, 16, 16), "varying": (16, 24, 40, 56)}


class Dispatcher:
    """Recomputes the first layers only, as the room of recomputation does."""

    def __init__(self, checkpoint: Callable[..., Any], chosen: set[int]) -> None:
        self.checkpoint, self.chosen = checkpoint, chosen

    def __call__(self, call: Any, *args: Any) -> Any:
        return self.checkpoint(call, *args) if id(call.__self__) in self.chosen else call(*args)


def build(recompute: int, reentrant: bool, frozen: bool) -> LlamaForCausalLM:
    torch.manual_seed(0)
    shape = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": LAYERS, "vocab_size": 128}
    model = LlamaForCausalLM(LlamaConfig(**shape, num_attention_heads=4, num_key_value_heads=2))
    if recompute:
        model.gradient_checkpointing_enable({"use_reentrant": reentrant})
    if 0 < recompute < LAYERS:
        chosen = {id(layer) for layer in model.model.layers[:recompute]}
        model.model._gradient_checkpointing_func = Dispatcher(model.model._gradient_checkpointing_func, chosen)
    if frozen:
        model.requires_grad_(False)
        for layer in model.model.layers:
            layer.self_attn.q_proj.weight.requires_grad_(True)
    return model


def alive(layer: torch.nn.Module, running: Any, ids: torch.Tensor) -> list[int]:
    """How many of a layer's weights were gathered in its forward, and how many of those are still there after it."""
    gathered: list[StorageWeakRef] = []
    leaf = getattr(layer, "_z3_leaf", False)

    def keep(module: torch.nn.Module, _: Any) -> None:
        weights = module.parameters(recurse=leaf)
        gathered.extend(StorageWeakRef(weight.untyped_storage()) for weight in weights if weight.numel())

    # A leaf's weights are gathered at once; without, each part's own right before it runs.
    hooks = [module.register_forward_pre_hook(keep) for module in ([layer] if leaf else layer.modules())]
    loss = running(ids, labels=ids).loss
    for hook in hooks:
        hook.remove()
    counts = [len(gathered), sum(not reference.expired() for reference in gathered)]
    running.backward(loss)
    return counts


def train(
    backend: str | None,
    lengths: str = "fixed",
    recompute: int = 0,
    reentrant: bool = True,
    frozen: bool = False,
    zero_init: bool = False,
) -> dict[str, Any]:
    torch._dynamo.reset()
    counters.reset()
    notice._said.clear()
    os.environ.update({"LJ_COMPILE": "1" if backend else "0", "LJ_COMPILE_BACKEND": backend or ""})
    with deepspeed.zero.Init(config_dict_or_path=copy.deepcopy(CONFIG), enabled=zero_init):
        model = build(recompute, reentrant, frozen)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    running, *_ = deepspeed.initialize(model=model, model_parameters=trained, config=copy.deepcopy(CONFIG))
    losses = []
    for step, length in enumerate(LENGTHS[lengths]):
        torch.manual_seed(100 * step + running.global_rank)
        ids = torch.randint(0, 128, (2, length))
        loss = running(ids, labels=ids).loss
        running.backward(loss)
        running.step()
        losses.append(loss.item())
    compiled = getattr(running, "ljperf_compiled", None)
    return {
        "losses": losses,
        "graphs": counters.graphs().unique,
        "breaks": counters.graphs().breaks,
        "alive": alive(model.model.layers[1], running, ids),
        "leaves": list(compiled.leaves) if compiled else None,
        "uncompiled": dict(compiled.uncompiled) if compiled else None,
        "said": sorted(notice._said),
    }


# Dynamo's own "eager" backend where only its graphs matter; AOT decides which tensors live on.
WAYS: dict[str, dict[str, Any]] = {
    "eager": {"backend": None},
    "compiled": {"backend": "aot_eager"},
    "all recomputed": {"backend": "aot_eager", "recompute": LAYERS, "reentrant": False},
    "two recomputed": {"backend": "eager", "recompute": 2},
    "eager, varying": {"backend": None, "lengths": "varying"},
    "varying": {"backend": "eager", "lengths": "varying"},
    "eager, frozen": {"backend": None, "frozen": True},
    "frozen": {"backend": "eager", "frozen": True},
    # Last: from the first zero.Init on, torch's linear is DeepSpeed's in this process.
    "eager, zero.Init": {"backend": None, "zero_init": True},
    "zero.Init": {"backend": "aot_eager", "zero_init": True},
}

if __name__ == "__main__":
    logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
    engine.patch(deepspeed)
    names = sys.argv[1:] or list(WAYS)
    counted = {name: train(**WAYS[name]) for name in names}
    if os.environ["RANK"] == "0":
        print("COUNTED " + json.dumps(counted))
    torch.distributed.destroy_process_group()
