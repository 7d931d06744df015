"""Run by torchrun: a few steps under ZeRO-3 with the hook in place; each rank prints what it met as JSON."""

from __future__ import annotations

import copy  # DeepSpeed takes entries out of the config that it is given
import json
import os
import sys

# What only some ranks were given, as a launcher that forwards no variables would do.
if os.environ["RANK"] in os.environ.get("TEST_ONLY_RANKS", "0,1").split(","):
    os.environ["CHECKPOINT_OPTIMIZATION"] = "true"

import deepspeed
import ljperf.startup  # noqa: F401 - what ljperf.pth does
import torch
from ljperf.models.building import build
from ljperf.models.catalog import model_named
from torch import nn

CONFIG: dict[str, object] = {
    "train_micro_batch_size_per_gpu": 1,
    "bf16": {"enabled": True},
    "zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": 0},
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
}


class HandMade(nn.Module):
    """A loop of one's own, with DeepSpeed's checkpointing around each layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(32, 32), nn.GELU()) for _ in range(4))
        self.calls = 0

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            hidden = deepspeed.checkpointing.checkpoint(self.run, layer, hidden)
        return hidden.float().pow(2).mean()

    def run(self, layer: nn.Module, hidden: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return layer(hidden)


def transformers_model() -> dict[str, object]:
    torch.manual_seed(1)
    with deepspeed.zero.Init(config_dict_or_path=CONFIG):
        model = build(model_named("tiny"), dtype=torch.bfloat16).train()
    if os.environ.get("TEST_RECOMPUTE", "1") == "1":
        model.gradient_checkpointing_enable({"use_reentrant": os.environ.get("TEST_REENTRANT", "1") == "1"})
    counts = [0] * 4
    for place, layer in enumerate(model.model.layers):
        layer.mlp.register_forward_pre_hook(lambda *_, place=place: counts.__setitem__(place, counts[place] + 1))
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=copy.deepcopy(CONFIG))
    generator = torch.Generator().manual_seed(engine.global_rank)
    losses = []
    for _ in range(3):
        ids = torch.randint(0, 512, (1, 32), generator=generator)
        loss = engine(input_ids=ids, labels=ids).loss
        engine.backward(loss)
        engine.step()
        losses.append(loss.item())
    return {"losses": losses, "forwards": counts}


def hand_made() -> dict[str, object]:
    torch.manual_seed(1)
    deepspeed.checkpointing.configure(None, partition_activations=False)
    # It makes a stream, which a CPU does not have.
    type(deepspeed.accelerator.get_accelerator()).Stream = property(lambda self: lambda device: None)
    model = HandMade().to(torch.bfloat16)
    engine, *_ = deepspeed.initialize(
        model=model,
        model_parameters=model.parameters(),
        config=copy.deepcopy(CONFIG) | {"zero_optimization": {"stage": 1}},
    )
    for _ in range(2):
        engine.backward(engine(torch.ones(2, 4, 32, dtype=torch.bfloat16, requires_grad=True)))
        engine.step()
    return {"calls": model.calls}


comm = sys.modules["deepspeed.comm.torch"]
comm.build_shm_op = lambda: None  # it would be compiled now
deepspeed.init_distributed("gloo")
found = {"rank": int(os.environ["RANK"]), "model": transformers_model()}
if "hand" in sys.argv:
    found["hand"] = hand_made()
print("FOUND " + json.dumps(found), flush=True)
torch.distributed.destroy_process_group()
