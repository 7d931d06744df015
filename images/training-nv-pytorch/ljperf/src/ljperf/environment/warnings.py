"""What will hurt later, with the way out: each rule takes what was found and yields lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ljperf.environment.environment import Environment

MIB: Final = 1024 * 1024
SHARED_BYTES: Final = 1024 * MIB  # docker's own 64 MiB stops data loaders and NCCL
LOCKED_BYTES: Final = 1024 * MIB  # RDMA locks its buffers; the usual 64 KiB or 8 MiB are less than one of them


def warnings(found: Environment) -> tuple[str, ...]:
    """All that is to be said."""
    return tuple(line for rule in RULES for line in rule(found))


def _parts(found: Environment) -> Iterator[str]:
    if found.versions.get("torch") is None:
        yield "PyTorch is not installed: nothing can train"
    for part in found.replaced:
        now = "is not installed any more" if part.found is None else f"is not {part.found} as installed now"
        yield f"the image's {part.name} {part.pinned} {now}: pip install {part.name}=={part.pinned}, or a new container"


def _devices(found: Environment) -> Iterator[str]:
    if found.problem:
        yield f"PyTorch cannot be used: {found.problem}"
    elif found.accelerators:
        return
    elif found.device_files:
        yield f"{found.device_files} GPUs are here, but PyTorch uses none: a CPU build, or too new for the driver?"
    elif found.variables.get("NVIDIA_VISIBLE_DEVICES", "") not in ("", "void", "none"):
        yield "no GPU answers: start the container with --gpus all, on a machine that has one"


def _shared(found: Environment) -> Iterator[str]:
    size = found.limits.shared_bytes
    if size is not None and size < SHARED_BYTES:
        yield f"/dev/shm has {size // MIB} MiB: start the container with --ipc=host or --shm-size=16g"


def _locked(found: Environment) -> Iterator[str]:
    locked = found.limits.locked_bytes
    if found.rdma and locked is not None and locked < LOCKED_BYTES:
        yield f"only {locked / MIB:.2g} MiB can be locked, and RDMA locks its buffers: start with --ulimit memlock=-1"


def _cores(found: Environment) -> Iterator[str]:
    gpus, cores = len(found.accelerators), found.limits.cores
    if gpus and cores < 2 * gpus:
        yield f"{cores:g} cores for {gpus} GPUs: data loaders and kernel launches will wait for them"


def _hooks(found: Environment) -> Iterator[str]:
    wishes = [name for name in found.variables if name.startswith(("CHECKPOINT_OPT", "LJ_COMPILE"))]
    if wishes and found.hooks.installed is None:
        yield f"the hooks are not installed in this Python, so {' and '.join(wishes)} do nothing here"
    if wishes == ["CHECKPOINT_OPTIMIZATION_LAYERS"]:
        yield "CHECKPOINT_OPTIMIZATION_LAYERS does nothing without CHECKPOINT_OPTIMIZATION=true"


def _interfaces(found: Environment) -> Iterator[str]:
    """NCCL's variable holds prefixes, or after "=" names, after "^" those to leave out; gloo's holds names."""
    for variable in ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"):
        written = found.variables.get(variable, "")
        if not written or written.startswith("^"):
            continue
        exact = written.startswith("=") or variable.startswith("GLOO")
        wanted = [name.partition(":")[0] for name in written.lstrip("=").split(",")]
        here = [*found.interfaces, "lo"]
        if not any(name == one if exact else name.startswith(one) for one in wanted for name in here):
            yield f"{variable}={written} names no interface of this machine; it has {', '.join(here)}"


RULES: Final[tuple[Callable[[Environment], Iterator[str]], ...]] = (
    _parts,
    _devices,
    _shared,
    _locked,
    _cores,
    _hooks,
    _interfaces,
)
