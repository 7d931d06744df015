"""All of it in one value, and what is wrong with it."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ljperf.environment import devices_here
from ljperf.environment.devices_here import Accelerator
from ljperf.environment.hooks import Hooks, hooks
from ljperf.environment.limits import Limits, limits
from ljperf.environment.pins import Replaced, replaced
from ljperf.environment.variables import variables
from ljperf.environment.versions import versions
from ljperf.environment.warnings import warnings


@dataclass(frozen=True, slots=True)
class Environment:
    """What this process can train with."""

    system: str
    versions: dict[str, str | None]
    replaced: tuple[Replaced, ...]
    """Parts in other versions than the image's constraints have them."""
    driver: str | None
    device_files: int
    """GPUs that the container was given, whether PyTorch can use them or not."""
    accelerators: tuple[Accelerator, ...]
    problem: str | None
    """Why PyTorch, though installed, cannot be imported or asked."""
    communication: str | None
    limits: Limits
    interfaces: tuple[str, ...]
    rdma: tuple[str, ...]
    hooks: Hooks
    variables: dict[str, str]
    warnings: tuple[str, ...] = ()


def environment(environ: Mapping[str, str] = os.environ) -> Environment:
    """Ask the system; imports PyTorch where there is one."""
    loaded, problem = devices_here.accelerators()
    found = Environment(
        system=f"{_distribution()}, Linux {platform.release()}, {platform.machine()}",
        versions=versions(),
        replaced=replaced(environ),
        driver=devices_here.driver(),
        device_files=devices_here.device_files(),
        accelerators=loaded,
        problem=problem,
        communication=None if problem else devices_here.communication(),
        limits=limits(),
        interfaces=devices_here.interfaces(),
        rdma=devices_here.rdma(),
        hooks=hooks(environ),
        variables=variables(environ),
    )
    return replace(found, warnings=warnings(found))


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    except OSError:
        return "an unknown distribution"
