"""What a framework is given, and what all share: the model with its loss and recomputation, a plain loop."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ljperf.benchmark import losses, tokens
from ljperf.benchmark.place import Place
from ljperf.benchmark.request import Request
from ljperf.benchmark.steps import Meter
from ljperf.models.shape import ModelShape
from ljperf.setup import TrainingSetup

if TYPE_CHECKING:
    import torch
    from torch import nn

GRADIENT_CLIPPING = 1.0


@dataclass(frozen=True, slots=True)
class Job:
    """One rank's training."""

    request: Request
    shape: ModelShape
    setup: TrainingSetup
    place: Place
    config: Mapping[str, Any]
    """DeepSpeed's, complete; empty without DeepSpeed."""

    def batches(self) -> Iterator[torch.Tensor]:
        """This rank's tokens, [micro_batch, sequence], without end."""
        if self.request.tokens:
            return tokens.given(self.request.tokens, self.shape, self.setup, self.place.rank)
        return tokens.synthetic(self.shape, self.setup, self.request.seed, self.place.rank)


class Loop(Protocol):
    """Runs as many steps as the meter wants."""

    def run(self, meter: Meter) -> None:
        """Train. Raises NotFiniteLossError."""


@dataclass(frozen=True, slots=True)
class StepLoop:
    """A hand loop: `step` trains on the batches of one optimizer step and gives their mean loss."""

    step: Callable[[Sequence[torch.Tensor]], float]
    batches: Iterator[torch.Tensor]
    accumulation: int
    device: str

    def run(self, meter: Meter) -> None:
        """Fetch tokens outside of the time: the benchmark is of training, not of a data loader."""
        for _ in range(meter.total):
            batch = [next(self.batches).to(self.device) for _ in range(self.accumulation)]
            meter.begin()
            meter.end(self.step(batch))


def built(job: Job, dtype: torch.dtype, inside: contextlib.AbstractContextManager[Any] | None = None) -> nn.Module:
    """The model in training mode with its loss and its recomputed layers; the same weights on every rank."""
    import torch

    from ljperf.models.building import build

    torch.manual_seed(job.request.seed)
    with inside or contextlib.nullcontext():
        model = build(job.shape, dtype=dtype, attention=job.setup.attention)
    losses.install(model, job.setup.loss)
    model.train()
    recompute(model, job)
    return model


def recompute(model: nn.Module, job: Job) -> None:
    """Let the first layers recompute."""
    if job.setup.recompute_layers:
        from ljperf.recompute.layers import apply_to_first

        # Reentrant: what Transformers does by default, and all that works with compiled blocks under ZeRO-3. FSDP2
        # gathers a block again through hooks on its output, which the reentrant form's first forward has none of.
        reentrant = job.setup.framework not in ("fsdp", "ddp")
        apply_to_first(model, job.setup.recompute_layers, use_reentrant=reentrant)


def blocks(model: nn.Module) -> nn.ModuleList:
    """The decoder's layers."""
    layers: nn.ModuleList = model.get_submodule("model.layers")
    return layers


def compile_each(model: nn.Module, job: Job) -> None:
    """Compile the blocks one by one, before any framework wraps them: one graph serves all."""
    if job.setup.compiled:
        from ljperf.compiling.blocks import compile_blocks

        stage = job.setup.zero_stage or None
        compile_blocks(model, backend=job.request.backend, zero_stage=stage, device=job.place.kind)


def mean(values: Sequence[torch.Tensor]) -> float:
    """Of the losses of one step, read from the device once."""
    import torch

    return float(torch.stack([value.detach().float() for value in values]).mean())


def stepper(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    synchronised: Callable[[bool], contextlib.AbstractContextManager[None]],
    clip: Callable[[], object],
) -> Callable[[Sequence[torch.Tensor]], float]:
    """A step of a sharded model: gradients are reduced in the last forward of an accumulation alone."""

    def step(batches: Sequence[torch.Tensor]) -> float:
        losses = []
        for index, ids in enumerate(batches):
            with synchronised(index == len(batches) - 1):
                loss = model(input_ids=ids, labels=ids, use_cache=False)["loss"]
                (loss / len(batches)).backward()
            losses.append(loss.detach())
        clip()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return mean(losses)

    return step


def optimizer_for(model: nn.Module, job: Job) -> torch.optim.Optimizer:
    """AdamW; fused where there is a GPU, so that it needs no temporaries."""
    import torch

    fused = True if job.place.kind == "cuda" else None
    return torch.optim.AdamW(model.parameters(), lr=job.request.learning_rate, weight_decay=0.0, fused=fused)
