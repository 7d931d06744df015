"""An environment as text."""

from __future__ import annotations

from collections.abc import Iterator

from ljperf.environment.environment import Environment
from ljperf.report.table import table

GIB = 1 << 30


def shown(found: Environment) -> str:
    """Tables for a terminal."""
    parts = [table(("what", "value"), _facts(found))]
    if found.variables:
        parts.append(table(("variable", "value"), sorted(found.variables.items())))
    parts.extend(f"warning: {text}" for text in found.warnings)
    return "\n\n".join(parts)


def _facts(found: Environment) -> Iterator[tuple[str, object]]:
    yield "system", found.system
    yield from ((name, version) for name, version in found.versions.items() if version is not None)
    yield "driver", found.driver
    for index, device in enumerate(found.accelerators):
        yield f"device {index}", f"{device.name}, {device.memory_bytes / GIB:.1f} GiB"
    yield "communication", found.communication
    yield "cores", f"{found.limits.cores:g}"
    yield "memory limit", _size(found.limits.memory_bytes)
    yield "/dev/shm", _size(found.limits.shared_bytes)
    yield "interfaces", ", ".join(found.interfaces) or None
    if found.rdma:
        yield "RDMA devices", ", ".join(found.rdma)
        yield "lockable memory", _size(found.limits.locked_bytes) or "unlimited"
    yield "hooks", _hooks(found)


def _hooks(found: Environment) -> str:
    if found.hooks.installed is None:
        return "not installed in this Python"
    patches = len([patch for patches in found.hooks.awaited.values() for patch in patches])
    return f"{found.hooks.installed}, {f'{patches} patches wait' if found.hooks.active else 'nothing is asked of them'}"


def _size(size_bytes: int | None) -> str | None:
    return None if size_bytes is None else f"{size_bytes / GIB:.1f} GiB"
