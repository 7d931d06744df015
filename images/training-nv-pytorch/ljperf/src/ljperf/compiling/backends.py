"""Which compiler can work here: Inductor needs a C++ compiler for CPUs, Triton and a C compiler for GPUs.

Both include Python.h in what they compile.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sysconfig
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# Traces, differentiates and partitions the graph as Inductor does (so saves the same memory), but generates no kernels.
WITHOUT_COMPILER: Final = "aot_eager"
CXX: Final = ("g++", "clang++", "c++")
CC: Final = ("gcc", "clang", "cc")


@dataclass(frozen=True, slots=True)
class Backend:
    """What to compile with, and why not with what was asked for."""

    name: str
    why_not: str | None = None


def usable_backend(
    wanted: str,
    device: str,
    *,
    environ: Mapping[str, str] = os.environ,
    which: Callable[[str], str | None] = shutil.which,
    installed: Callable[[str], object] = importlib.util.find_spec,
    has_headers: Callable[[], bool] | None = None,
) -> Backend:
    """Take the wanted backend if the tools it calls are here, else one that calls none. `device`: cpu, cuda …"""
    if wanted != "inductor":
        return Backend(wanted)
    missing = _missing_tool(device, environ, which, installed)
    if missing is None and not (has_headers or _has_headers)():
        missing = "the C headers of Python (python3-dev), and there are none"
    return Backend(WITHOUT_COMPILER, f"inductor needs {missing}") if missing else Backend(wanted)


def _missing_tool(
    device: str, environ: Mapping[str, str], which: Callable[[str], str | None], installed: Callable[[str], object]
) -> str | None:
    if device == "cpu":
        return None if _compiler("CXX", CXX, environ, which) else "a C++ compiler (g++), and there is none"
    if not installed("triton"):
        return "Triton, which is not installed"
    # Triton compiles a small launcher in C for each kernel, with whatever it finds.
    return (
        None if _compiler("CC", CC, environ, which) else "a C compiler (gcc) for Triton's launchers, and there is none"
    )


def _has_headers() -> bool:
    """Triton looks where an unpatched Python would have them, PyTorch where this one says."""
    folders = {sysconfig.get_path("include"), sysconfig.get_path("include", "posix_prefix")}
    return any(Path(folder, "Python.h").exists() for folder in folders)


def _compiler(
    variable: str, names: tuple[str, ...], environ: Mapping[str, str], which: Callable[[str], str | None]
) -> str | None:
    chosen = environ.get(variable, "").split()[:1]
    return next(filter(None, map(which, chosen or names)), None)


def training_device() -> str:
    """The kind of device that training runs on here: cuda, another accelerator, or cpu."""
    import torch

    if os.environ.get("DS_ACCELERATOR") == "cpu":
        return "cpu"
    if torch.cuda.is_available():
        return "cuda"
    accelerator = getattr(torch, "accelerator", None)  # torch 2.6 and later
    return str(accelerator.current_accelerator().type) if accelerator and accelerator.is_available() else "cpu"
