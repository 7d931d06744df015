"""Environment variables that decide how training runs. Others are not shown: they may be secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

SHOWN: Final = frozenset(
    {
        "CUDA_VISIBLE_DEVICES",
        "CUDA_DEVICE_ORDER",
        "CUDA_LAUNCH_BLOCKING",
        "CUDA_HOME",
        "CUDA_MODULE_LOADING",
        "CUDA_DEVICE_MAX_CONNECTIONS",
        "ACCELERATE_DYNAMO_BACKEND",
        "ACCELERATE_MIXED_PRECISION",
        "ACCELERATE_USE_DEEPSPEED",
        "HF_HOME",
        "HF_HUB_OFFLINE",
        "MKL_NUM_THREADS",
        "PIP_CONSTRAINT",
        "PYTHONPATH",
        "DS_ACCELERATOR",
        "GLOO_SOCKET_IFNAME",
        "LD_LIBRARY_PATH",
        "LD_PRELOAD",
        "MASTER_ADDR",
        "MASTER_PORT",
        "NVIDIA_VISIBLE_DEVICES",
        "NVIDIA_DRIVER_CAPABILITIES",
        "OMP_NUM_THREADS",
        "PYTORCH_ALLOC_CONF",
        "PYTORCH_CUDA_ALLOC_CONF",
        "RANK",
        "LOCAL_RANK",
        "LOCAL_WORLD_SIZE",
        "WORLD_SIZE",
        "TRITON_CACHE_DIR",
        "UCX_NET_DEVICES",
        "UCX_TLS",
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
    "TORCH_LOGS",
    "TORCH_DISTRIBUTED_DEBUG",
)
_SECRET: Final = ("KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "AUTH", "COOKIE")
_USER_IN_ADDRESS: Final = re.compile(r"(?<=://)[^/@\s]+@")


def variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Those that are set and may be shown, by name; without the user and password of an address."""
    return {name: _USER_IN_ADDRESS.sub("***@", environ[name]) for name in sorted(environ) if _is_shown(name)}


def _is_shown(name: str) -> bool:
    if any(word in name for word in _SECRET):
        return False
    return name in SHOWN or name.startswith(_PREFIXES)
