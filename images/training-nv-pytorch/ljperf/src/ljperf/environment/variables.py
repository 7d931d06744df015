"""Environment variables that decide how training runs. Others are not shown: they may be secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SHOWN: Final = frozenset(
    {
        "CUDA_VISIBLE_DEVICES",
        "CUDA_DEVICE_ORDER",
        "CUDA_LAUNCH_BLOCKING",
        "DS_ACCELERATOR",
        "GLOO_SOCKET_IFNAME",
        "LD_LIBRARY_PATH",
        "LD_PRELOAD",
        "MASTER_ADDR",
        "MASTER_PORT",
        "NVIDIA_VISIBLE_DEVICES",
        "NVIDIA_DRIVER_CAPABILITIES",
        "OMP_NUM_THREADS",
        "PYTORCH_CUDA_ALLOC_CONF",
        "RANK",
        "LOCAL_RANK",
        "WORLD_SIZE",
    }
)
_PREFIXES: Final = (
    "CHECKPOINT_OPTIMIZATION",
    "LJ_COMPILE",
    "LJPERF_",
    "NCCL_",
    "ACCL_",
    "TORCH_NCCL_",
    "TORCHINDUCTOR_",
)
_SECRET: Final = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")


def variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Those that are set and may be shown, by name."""
    return {name: environ[name] for name in sorted(environ) if _is_shown(name)}


def _is_shown(name: str) -> bool:
    if any(word in name for word in _SECRET):
        return False
    return name in SHOWN or name.startswith(_PREFIXES)
