"""Memory, graphs and versions: what a run used. Peaks are those since `reset`."""

from __future__ import annotations

import contextlib
import resource
from pathlib import Path
from typing import Any

from ljperf.benchmark.place import Place
from ljperf.compiling import counters
from ljperf.environment.devices_here import processor
from ljperf.environment.versions import installed_versions

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
    """What the compiler made so far in this process: graphs, breaks and their reasons, kernels."""
    found = counters.graphs()
    return {"graphs": found.unique, "breaks": found.breaks, "kernels": found.kernels, "reasons": dict(found.reasons)}


def versions() -> dict[str, str]:
    """Of Python and the packages that decide speed, as far as they are installed; nothing is imported."""
    return installed_versions(PACKAGES)


def device_name(place: Place) -> str:
    """What the device calls itself."""
    if place.kind == "cuda":
        import torch

        return str(torch.cuda.get_device_name(place.local_rank))
    return processor()
