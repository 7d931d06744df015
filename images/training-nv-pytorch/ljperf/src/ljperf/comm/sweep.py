"""One rank's part of a sweep."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from ljperf.comm.operations import Operation, buffers, bus_factor, call_of, elements, fill, wrong
from ljperf.errors import LjperfError

FEWEST: Final = 3  # repetitions, however slow one is
WARMUP: Final = 3


class CollectiveError(LjperfError):
    """It failed: a rank is gone, or there is too little memory."""


class NotSupportedError(CollectiveError):
    """The backend does not have this collective; all ranks see that alike, before they send anything."""


@dataclass(frozen=True, slots=True)
class Row:
    """One size of one operation, as nccl-tests print it."""

    operation: Operation
    size: int
    """Bytes: the larger of what a rank sends and receives."""
    count: int
    """Elements that a rank hands in (all-gather) or gets (reduce-scatter); all-reduce: both."""
    dtype: str
    microseconds: float
    """A call's mean, on the slowest rank."""
    algbw: float
    """Algorithm bandwidth, GB/s (1e9): size by time."""
    busbw: float
    """Bus bandwidth, GB/s: what a ring puts on a link."""
    wrong: int
    """Wrong elements on all ranks."""
    repetitions: int


@dataclass(frozen=True, slots=True)
class Plan:
    """How each size is measured."""

    dtype: str
    device: str
    repetitions: int = 20
    seconds: float = 1.0
    """For one size, about; fewer repetitions, not less than three, if they take longer."""


def sweep(operation: Operation, sizes: tuple[int, ...], plan: Plan) -> Iterator[Row]:
    """Measure each size; every rank must call it, and each gets the same rows. Raises CollectiveError."""
    for size in sizes:
        try:
            yield _measure(operation, size, plan)
        except (RuntimeError, NotImplementedError, ValueError) as error:
            reason = str(error).strip().partition("\n")[0] or type(error).__name__
            kind = NotSupportedError if re.search(r"not (currently )?(support|implement)", reason) else CollectiveError
            raise kind(f"{operation} of {size} bytes failed: {reason}") from error


def _measure(operation: Operation, size: int, plan: Plan) -> Row:
    import torch
    import torch.distributed as dist

    dtype, ranks = getattr(torch, plan.dtype), dist.get_world_size()
    whole, part = elements(operation, size, dtype.itemsize, ranks)
    held = buffers(operation, whole, part, dtype, plan.device)
    call = call_of(operation, held)
    faults = _faults(operation, held, call, plan)
    held.send.zero_()
    seconds, repetitions = _timed(call, plan)
    really = whole * dtype.itemsize
    algbw = really / seconds / 1e9
    bus = algbw * bus_factor(operation, ranks)
    return Row(operation, really, part, plan.dtype, seconds * 1e6, algbw, bus, faults, repetitions)


def _faults(operation: Operation, held: Any, call: Callable[[], Any], plan: Plan) -> int:
    import torch
    import torch.distributed as dist

    fill(operation, held, dist.get_rank(), dist.get_world_size(), plan.device)
    call()
    found = wrong(operation, held, dist.get_rank(), dist.get_world_size(), plan.device)
    total = torch.tensor([found], dtype=torch.int64, device=plan.device)
    dist.all_reduce(total)
    return int(total.item())


def _timed(call: Callable[[], Any], plan: Plan) -> tuple[float, int]:
    """Seconds of one call on the slowest rank, and how many were made; ranks agree on the number."""
    estimate = _seconds(call, WARMUP, plan.device)
    repetitions = max(FEWEST, min(plan.repetitions, int(plan.seconds / max(estimate, 1e-9))))
    return _seconds(call, repetitions, plan.device), repetitions


def _seconds(call: Callable[[], Any], repetitions: int, device: str) -> float:
    import torch
    import torch.distributed as dist

    dist.barrier()
    _synchronize(device)
    start = time.perf_counter()
    for _ in range(repetitions):
        call()
    _synchronize(device)
    spent = torch.tensor([(time.perf_counter() - start) / repetitions], dtype=torch.float64, device=device)
    dist.all_reduce(spent, op=dist.ReduceOp.MAX)
    return float(spent.item())


def _synchronize(device: str) -> None:
    if device != "cpu":
        import torch

        torch.cuda.synchronize()
