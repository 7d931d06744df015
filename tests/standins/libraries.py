"""Shared libraries of a few hundred bytes that answer one version question, as CUDA's and NCCL's do."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Library:
    """A library's name for the loader, and the C source of its one function."""

    soname: str
    source: str


def filling(soname: str, function: str, answer: int) -> Library:
    """Return a library whose function fills an `int*` and returns success."""
    return Library(soname, f"int {function}(int *version) {{ *version = {answer}; return 0; }}\n")


def returning(soname: str, function: str, answer: int) -> Library:
    """Return a library whose function returns the number itself."""
    return Library(soname, f"unsigned long {function}(void) {{ return {answer}; }}\n")


CUDART = filling("libcudart.so.12", "cudaRuntimeGetVersion", 12080)
CUDNN = returning("libcudnn.so.9", "cudnnGetVersion", 90700)
NCCL_OF_BASE = filling("libnccl.so.2", "ncclGetVersion", 22501)
NCCL_OF_ACCL = filling("libnccl.so.2", "ncclGetVersion", 22304)


def compiled(library: Library) -> bytes:
    """Return the library, compiled without the C library, so that it loads in any image of this processor."""
    if shutil.which("gcc") is None:
        pytest.skip("no C compiler: the stand-ins for CUDA and NCCL need gcc")
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "library.c", Path(folder) / library.soname
        source.write_text(library.source)
        options = ("-shared", "-fPIC", "-nostdlib", "-s", f"-Wl,-soname,{library.soname}")
        subprocess.run(["gcc", *options, "-o", str(target), str(source)], check=True, capture_output=True)
        return target.read_bytes()
