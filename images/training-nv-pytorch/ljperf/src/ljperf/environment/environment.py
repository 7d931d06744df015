"""All of it in one value, and what is wrong with it."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ljperf.environment.devices_here import Accelerator, accelerators, communication, driver, interfaces
from ljperf.environment.hooks import Hooks, hooks
from ljperf.environment.limits import Limits, limits
from ljperf.environment.variables import variables
from ljperf.environment.versions import versions

MIB = 1024 * 1024
SHARED_BYTES = 1024 * MIB  # docker's own 64 MiB stops data loaders and NCCL


@dataclass(frozen=True, slots=True)
class Environment:
    """What this process can train with."""

    system: str
    versions: dict[str, str | None]
    driver: str | None
    accelerators: tuple[Accelerator, ...]
    communication: str | None
    limits: Limits
    interfaces: tuple[str, ...]
    hooks: Hooks
    variables: dict[str, str]
    warnings: tuple[str, ...]


def environment(environ: Mapping[str, str] = os.environ) -> Environment:
    """Ask the system; imports PyTorch where there is one."""
    found = versions()
    here, allowed, loaded = hooks(environ), limits(), accelerators()
    return Environment(
        system=f"{_distribution()}, Linux {platform.release()}, {platform.machine()}",
        versions=found,
        driver=driver(),
        accelerators=loaded,
        communication=communication(),
        limits=allowed,
        interfaces=interfaces(),
        hooks=here,
        variables=variables(environ),
        warnings=tuple(warnings(found, here, allowed, environ, pinned_torch(environ), has_gpu=bool(loaded))),
    )


def warnings(
    found: Mapping[str, str | None],
    here: Hooks,
    allowed: Limits,
    environ: Mapping[str, str],
    torch: str | None,
    *,
    has_gpu: bool,
) -> Iterator[str]:
    """What will hurt later, with the way out. `torch` is the version that the image wants to keep."""
    if allowed.shared_bytes is not None and allowed.shared_bytes < SHARED_BYTES:
        yield f"/dev/shm has {allowed.shared_bytes // MIB} MiB: start the container with --ipc=host or --shm-size=16g"
    if torch is not None and found.get("torch") not in (None, torch):
        yield f"torch {found['torch']} is not the image's own, {torch}: pip install torch=={torch}, or a new container"
    if found.get("torch") is None:
        yield "PyTorch is not installed: nothing can train"
    if environ.get("NVIDIA_VISIBLE_DEVICES", "") not in ("", "void", "none") and not has_gpu:
        yield "no GPU answers: start the container with --gpus all, on a machine that has one"
    if here.installed is None and any(name.startswith(("CHECKPOINT_OPT", "LJ_COMPILE")) for name in environ):
        yield "the hooks are not installed in this Python, so CHECKPOINT_OPTIMIZATION and LJ_COMPILE do nothing here"


def pinned_torch(environ: Mapping[str, str]) -> str | None:
    """The torch that pip may not replace, by the image's constraints; None where nothing pins it."""
    for path in environ.get("PIP_CONSTRAINT", "").split():
        try:
            lines = Path(path).read_text(encoding="utf-8").splitlines()
        except OSError:
            continue
        for line in lines:
            name, pinned, version = line.partition("#")[0].partition("==")
            if pinned and name.strip() == "torch":
                return version.strip()
    return None


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    except OSError:
        return "an unknown distribution"
