"""Which process a container belongs to, so that what a killed run leaves behind is known from what another one uses."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def owner_of_this_process() -> str | None:
    """Return a name that no other process ever has: boot, PID namespace, PID and start time; None without /proc."""
    return _owner(os.getpid())


def is_gone(owner: str) -> bool:
    """Say whether the process of that name has ended; of one in another namespace or machine nothing is known."""
    place, _, process = owner.rpartition("/")
    pid, _, _ = process.partition("@")
    return place == _place() and pid.isdigit() and _owner(int(pid)) != owner


def _owner(pid: int) -> str | None:
    with suppress(OSError, IndexError):
        # proc(5), /proc/pid/stat: the name in brackets may hold anything; field 22 counts from before it.
        started = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
        return f"{_place()}/{pid}@{started}"
    return None


def _place() -> str | None:
    """Return this boot of this machine and the namespace in which PIDs count."""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    return None
