"""The peak of a real training step of a small model, counted by PyTorch's own MemTracker on fake tensors.

No memory for weights, no GPU: each operation says what it would allocate. It is what the phase model is held against.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ljperf.errors import UsageError
from ljperf.models.shape import ModelShape
from ljperf.setup import TrainingSetup

if TYPE_CHECKING:
    from torch import nn


def tracked_peak(shape: ModelShape, setup: TrainingSetup) -> int:
    """Bytes at the peak of one forward and backward in one type, on one rank, without an optimizer.

    `setup.recompute_layers` of the first layers recompute. Raises UsageError for a sharded setup.
    """
    if setup.world_size != 1 or setup.accumulation != 1:
        raise UsageError("a tracked step has one rank and one forward", hint="world_size=1, accumulation=1")
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.distributed._tools.mem_tracker import MemTracker

    from ljperf.models.building import build

    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[setup.precision]
    with FakeTensorMode():
        model = build(shape, dtype=dtype, attention=setup.attention)
        _recompute_first(model, setup.recompute_layers)
        model.train()
        ids = torch.randint(0, shape.vocab, (setup.micro_batch, setup.sequence))
        tracker = MemTracker()
        tracker.track_external(model, ids)
        with tracker:
            loss = model(input_ids=ids, labels=ids, use_cache=False)["loss"]
            loss.backward()
    return max(_total(snapshot) for snapshot in tracker.get_tracker_snapshot("peak").values())


def _total(snapshot: dict[str, int]) -> int:
    return next(size for name, size in snapshot.items() if "total" in str(name).lower())


def _recompute_first(model: nn.Module, count: int) -> None:
    from torch.utils.checkpoint import checkpoint

    for layer in list(model.get_submodule("model.layers"))[:count]:
        layer.forward = _checkpointed(layer.forward, checkpoint)


def _checkpointed(forward: Any, checkpoint: Any) -> Any:
    def again(*arguments: Any, **named: Any) -> Any:
        return checkpoint(forward, *arguments, use_reentrant=False, **named)

    return again
