"""The peak of a real training step of a small model, counted by PyTorch's own MemTracker on a CPU.

It is what the phase model is held against. Tensors are real: with fake ones Transformers from 4.53 on makes an
attention mask, as if for an export, which training does without and which changes what attention saves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ljperf.errors import UsageError
from ljperf.memory.gathers import NOTHING
from ljperf.memory.phases import Peak, simulate, step_of
from ljperf.memory.states import States, autocasts, stream_bytes
from ljperf.models.shape import ModelShape
from ljperf.setup import TrainingSetup

if TYPE_CHECKING:
    from torch import nn


def tracked_peak(shape: ModelShape, setup: TrainingSetup) -> int:
    """Bytes at the peak of one forward and backward on one rank, without an optimizer.

    `setup.recompute_layers` of the first layers recompute; DDP runs under autocast. Raises UsageError for several
    ranks or forwards.
    """
    import torch
    from torch.distributed._tools.mem_tracker import MemTracker

    from ljperf.models.building import build

    _refuse_several(setup)
    half = torch.float16 if setup.precision == "fp16" else torch.bfloat16
    whole = autocasts(setup) or setup.precision == "fp32"
    model = build(shape, dtype=torch.float32 if whole else half, attention=setup.attention).train()
    recompute_first(model, setup.recompute_layers)
    _install_loss(model, setup)
    ids = torch.zeros(setup.micro_batch, setup.sequence, dtype=torch.long)
    tracker = MemTracker()
    tracker.track_external(model, ids)
    with tracker:
        with torch.autocast("cpu", half, enabled=autocasts(setup)):
            loss = model(input_ids=ids, labels=ids, use_cache=False)["loss"]
        loss.backward()
    return max(_total(snapshot) for snapshot in tracker.get_tracker_snapshot("peak").values())


def predicted_peak(shape: ModelShape, setup: TrainingSetup) -> Peak:
    """The phase model's peak for the same: parameters, gradients as they come, activations; nothing else."""
    _refuse_several(setup)
    step = step_of(shape, setup)
    size = stream_bytes(setup)
    bare = States(size * step.parameters.total, 0, 0, size, 0, 0, 0)
    weights = step.gathers if autocasts(setup) else NOTHING
    return simulate(replace(step, states=bare, gathers=weights, reused=0), setup.recompute_layers)


def _refuse_several(setup: TrainingSetup) -> None:
    if setup.world_size != 1 or setup.accumulation != 1:
        raise UsageError("a tracked step has one rank and one forward", hint="world_size=1, accumulation=1")


def _install_loss(model: nn.Module, setup: TrainingSetup) -> None:
    if setup.loss != "plain":
        from ljperf.benchmark.losses import install

        install(model, setup.loss)


def _total(snapshot: dict[str, int]) -> int:
    return next(size for name, size in snapshot.items() if "total" in str(name).lower())


def recompute_first(model: nn.Module, count: int) -> None:
    """Let the first `count` layers recompute, whatever the version of Transformers."""
    from torch.utils.checkpoint import checkpoint

    for layer in list(model.get_submodule("model.layers"))[:count]:
        layer.forward = _checkpointed(layer.forward, checkpoint)


def _checkpointed(forward: Any, checkpoint: Any) -> Any:
    def again(*arguments: Any, **named: Any) -> Any:
        return checkpoint(forward, *arguments, use_reentrant=False, **named)

    return again


def compared() -> Iterator[tuple[str, int, int, int]]:
    """A few small models: what it is, recomputed layers, bytes counted, bytes predicted."""
    small = ModelShape("small", "llama", 64, 3, 4, 2, 16, 176, 512, 2048)
    setup = TrainingSetup(sequence=256)
    for what, shape, asked in (
        ("bf16, one sequence", small, setup),
        ("bf16, two sequences, large vocabulary", replace(small, vocab=8192), replace(setup, micro_batch=2)),
        ("bf16, all layers recompute", replace(small, vocab=64), setup.recomputing(3)),
        ("fp32, one layer recomputes", small, replace(setup, precision="fp32", recompute_layers=1)),
    ):
        yield what, asked.recompute_layers, tracked_peak(shape, asked), predicted_peak(shape, asked).bytes
