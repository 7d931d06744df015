"""Three collectives: what each moves, what it must give, and its bus bandwidth.

Sizes are nccl-tests': the larger of what a rank sends and receives, so for all-gather and reduce-scatter the whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

Operation = Literal["all-reduce", "all-gather", "reduce-scatter"]
OPERATIONS: Final[tuple[Operation, ...]] = ("all-reduce", "all-gather", "reduce-scatter")


def bus_factor(operation: Operation, ranks: int) -> float:
    """What algorithm bandwidth is multiplied with, so that it compares with a link's (nccl-tests, PERFORMANCE.md).

    In a ring each rank sends (n-1)/n of the whole once, for all-reduce twice.
    """
    return (2 if operation == "all-reduce" else 1) * (ranks - 1) / ranks


def elements(operation: Operation, size: int, item: int, ranks: int) -> tuple[int, int]:
    """Elements of the whole, and of a rank's part (all-reduce: the whole): as many as fit in `size` bytes."""
    if operation == "all-reduce":
        whole = max(1, size // item)
        return whole, whole
    part = max(1, size // item // ranks)
    return part * ranks, part


@dataclass(frozen=True, slots=True)
class Buffers:
    """What one call reads and writes; all-reduce works in place."""

    send: Any
    receive: Any


def buffers(operation: Operation, whole: int, part: int, dtype: Any, device: str) -> Buffers:
    """Zeros: they stay zeros however often they are summed, where other numbers would overflow."""
    import torch

    large = torch.zeros(whole, dtype=dtype, device=device)
    if operation == "all-reduce":
        return Buffers(large, large)
    small = torch.zeros(part, dtype=dtype, device=device)
    return Buffers(small, large) if operation == "all-gather" else Buffers(large, small)


def call_of(operation: Operation, held: Buffers) -> Callable[[], Any]:
    """The collective itself; newer PyTorch renames two of them."""
    import torch.distributed as dist

    if operation == "all-reduce":
        return lambda: dist.all_reduce(held.send)
    older, newer = {
        "all-gather": ("all_gather_into_tensor", "all_gather_single"),
        "reduce-scatter": ("reduce_scatter_tensor", "reduce_scatter_single"),
    }[operation]
    function = getattr(dist, newer, None) or getattr(dist, older)
    return lambda: function(held.receive, held.send)


def pattern(rank: int, start: int, count: int, dtype: Any, device: str, *, every: int = 1) -> Any:
    """Elements `start` to `start + count` of a rank's numbers, 0, 1 and 2; only of each `every`th rank, else zeros."""
    import torch

    if rank % every:
        return torch.zeros(count, dtype=dtype, device=device)
    return (torch.arange(start, start + count, device=device) + rank // every).remainder(3).to(dtype)


def every_of(operation: Operation, ranks: int) -> int:
    """So few ranks hand in numbers to be summed that bf16, which counts to 256, holds every sum exactly."""
    return 1 if operation == "all-gather" else max(1, ranks // 64)


def fill(operation: Operation, held: Buffers, rank: int, ranks: int, device: str) -> None:
    """Give every rank its own numbers."""
    every = every_of(operation, ranks)
    held.send.copy_(pattern(rank, 0, held.send.numel(), held.send.dtype, device, every=every))


def wrong(operation: Operation, held: Buffers, rank: int, ranks: int, device: str) -> int:
    """How many elements of this rank's result are not exactly what they must be."""
    import torch

    count, every = held.receive.numel(), every_of(operation, ranks)
    if operation == "all-gather":
        part = count // ranks
        expected = torch.cat([pattern(other, 0, part, torch.float64, device) for other in range(ranks)])
    else:
        start = rank * count if operation == "reduce-scatter" else 0
        expected = torch.zeros(count, dtype=torch.float64, device=device)
        for other in range(0, ranks, every):
            expected += pattern(other, start, count, torch.float64, device, every=every)
    return int((held.receive.to(torch.float64) != expected).sum())
