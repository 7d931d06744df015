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


def pattern(rank: int, start: int, count: int, dtype: Any, device: str) -> Any:
    """Elements `start` to `start + count` of a rank's numbers: 0, 1, 2, so that sums are exact in bf16 to 128 ranks."""
    import torch

    return (torch.arange(start, start + count, device=device) + rank).remainder(3).to(dtype)


def fill(operation: Operation, held: Buffers, rank: int, dtype: Any, device: str) -> None:
    """Give every rank its own numbers."""
    held.send.copy_(pattern(rank, 0, held.send.numel(), dtype, device))


def wrong(operation: Operation, held: Buffers, rank: int, ranks: int, device: str) -> int:
    """How many elements of this rank's result are not what they must be."""
    import torch

    count = held.receive.numel()
    if operation == "all-gather":
        part = count // ranks
        expected = torch.cat([pattern(other, 0, part, torch.float64, device) for other in range(ranks)])
    else:
        start = rank * count if operation == "reduce-scatter" else 0
        parts = (pattern(other, start, count, torch.float64, device) for other in range(ranks))
        expected = sum(parts, torch.zeros(count, dtype=torch.float64, device=device))
    # Beyond what the type can count exactly, a sum may be off by a rounding for each rank.
    exact = 2 * ranks <= _exact(held.receive.dtype)
    slack = 0.0 if exact else torch.finfo(held.receive.dtype).eps * ranks
    return int(((held.receive.to(torch.float64) - expected).abs() > slack * expected.abs()).sum())


def _exact(dtype: Any) -> float:
    """The largest integer up to which the type holds all."""
    import torch

    return 2 / torch.finfo(dtype).eps if dtype.is_floating_point else float(torch.iinfo(dtype).max)
