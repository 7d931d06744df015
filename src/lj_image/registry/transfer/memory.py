"""What a transfer takes of memory beside its windows."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

_ARENA_MAX: Final = -8
"""M_ARENA_MAX of glibc's malloc.h (mallopt(3))."""


def share_one_pool() -> None:
    """Let all threads of this process take memory from one pool, where the C library has several.

    Blocks pass through many threads, and what one pool keeps of them the others do not use: six registries took 170 to
    300 MiB, and take 100 so. Has to be called before there are threads.
    """
    import ctypes

    with suppress(OSError, AttributeError, TypeError):  # another C library
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)
