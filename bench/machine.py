"""What the figures were measured on, in a line or two for the head of the table."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path


def description() -> str:
    """Return processor, cores, memory, kernel, Python and the engine that DOCKER_HOST names."""
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3
    parts = (
        f"{_processor()}, {len(os.sched_getaffinity(0))} cores, {memory_gib:.1f} GiB",
        f"Linux {platform.release()}",
        f"Python {sys.version.split()[0]}",
        _engine(),
    )
    return ", ".join(parts)


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())


def _engine() -> str:
    from lj_image.builders.docker import engine
    from lj_image.errors import EngineError

    try:
        version: str = engine.connect().version(api_version=False)["Version"]
    except EngineError:
        return "no engine"
    return f"Docker Engine {version}"
