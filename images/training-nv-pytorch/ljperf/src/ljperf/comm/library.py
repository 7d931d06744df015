"""Which library answers: asked of what this process has loaded, not of what is installed."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MAPS: Final = Path("/proc/self/maps")
COLLECTIVES: Final = re.compile(r"/lib(nccl|accl)[^/]*\.so[^/]*$")
PLUGINS: Final = re.compile(r"/lib(nccl|accl)-(net|tuner|profiler)[^/]*\.so[^/]*$")


@dataclass(frozen=True, slots=True)
class Library:
    """One communication library."""

    name: str
    """NCCL, ACCL-N or gloo."""
    version: str
    path: str | None
    plugins: tuple[str, ...] = ()
    """Network and tuning plugins that it has loaded."""

    def __str__(self) -> str:
        extra = f" with {', '.join(self.plugins)}" if self.plugins else ""
        return f"{self.name} {self.version} ({self.path or 'path unknown'}){extra}"


def loaded(paths: Iterable[str]) -> tuple[list[str], list[str]]:
    """Among loaded files, the collective libraries and their plugins, each once."""
    unique = dict.fromkeys(paths)
    plugins = [path for path in unique if PLUGINS.search(path)]
    return [path for path in unique if COLLECTIVES.search(path) and path not in plugins], plugins


def mapped(maps: Path = MAPS) -> list[str]:
    """Files that this process has in memory; none where there is no /proc."""
    try:
        text = maps.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return [line.split(maxsplit=5)[5] for line in text.splitlines() if len(line.split(maxsplit=5)) == 6]


def decoded(code: int) -> str:
    """NCCL's version number as text: 22103 is 2.21.3, and before 2.9 the numbers were 2708 for 2.7.8 (nccl.h)."""
    base = 10_000 if code >= 10_000 else 1000
    return f"{code // base}.{code % base // 100}.{code % 100}"


def nccl() -> Library | None:
    """The NCCL or ACCL-N that this process has loaded; None if PyTorch has none. Imports PyTorch."""
    import torch

    paths, plugins = loaded(mapped())
    if not paths and not (torch.cuda.is_available() and torch.distributed.is_nccl_available()):
        return None
    path = paths[0] if paths else None  # else it is linked into PyTorch
    version = asked(path) if path else None
    if version is None:
        version = ".".join(map(str, torch.cuda.nccl.version()))
    return Library(name_of(path), version, path, tuple(plugins))


def name_of(path: str | None) -> str:
    """ACCL-N calls itself NCCL, so that programs find it; the folder or the file it really is says more."""
    real = str(Path(path).resolve()) if path else ""
    return "ACCL-N" if "accl" in f"{path or ''} {real}".lower() else "NCCL"


def asked(path: str) -> str | None:
    """The version that the library itself names; None if it does not."""
    code = ctypes.c_int()
    try:
        failed = ctypes.CDLL(path).ncclGetVersion(ctypes.byref(code))
    except (OSError, AttributeError):
        return None
    return None if failed else decoded(code.value)


def gloo() -> Library:
    """Gloo is a part of PyTorch, without a version of its own. Imports PyTorch."""
    import torch

    path = next((path for path in mapped() if path.endswith("/libtorch_cpu.so")), None)
    return Library("gloo", f"of PyTorch {torch.__version__}", path)
