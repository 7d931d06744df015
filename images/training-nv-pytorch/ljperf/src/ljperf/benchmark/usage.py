"""Memory, graphs and versions: what a run used. Peaks are those since `reset`."""

from __future__ import annotations

import contextlib
import platform
import resource
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ljperf.benchmark.place import Place

PACKAGES = ("torch", "transformers", "deepspeed", "accelerate", "liger-kernel", "triton")


def reset(place: Place) -> None:
    """Forget earlier peaks; where the kernel does not let us, the peak is the process's whole life's."""
    if place.kind == "cuda":
        import torch

        torch.cuda.reset_peak_memory_stats(place.local_rank)
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # proc(5): 5 resets the peak resident set size


def peaks(place: Place) -> dict[str, int | None]:
    """This rank's peaks in bytes: what PyTorch gave out, what it held of the GPU (both None on CPU), host memory."""
    found: dict[str, int | None] = {"allocated": None, "reserved": None, "retries": None, "host": host_peak()}
    if place.kind == "cuda":
        import torch

        found["allocated"] = torch.cuda.max_memory_allocated(place.local_rank)
        found["reserved"] = torch.cuda.max_memory_reserved(place.local_rank)
        found["retries"] = torch.cuda.memory_stats(place.local_rank).get("num_alloc_retries", 0)
    return found


def host_peak() -> int:
    """Peak resident set size of this process in bytes."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def graphs() -> dict[str, Any]:
    """What the compiler made so far in this process: graphs, breaks and their reasons."""
    from torch._dynamo.utils import counters

    reasons = {str(reason).splitlines()[0][:200]: count for reason, count in counters["graph_break"].items()}
    return {
        "graphs": counters["stats"].get("unique_graphs", 0),
        "breaks": sum(counters["graph_break"].values()),
        "reasons": reasons,
    }


def versions() -> dict[str, str]:
    """Of Python and the packages that decide speed, as far as they are installed; nothing is imported."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def device_name(place: Place) -> str:
    """What the device calls itself."""
    if place.kind == "cuda":
        import torch

        return str(torch.cuda.get_device_name(place.local_rank))
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()
