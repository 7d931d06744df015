"""Several layers are assembled at once, each in a process of its own; the order of finishing decides nothing."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Final

from lj_image.builders.oci.layer_cache import CachedLayer
from lj_image.builders.oci.layer_job import assemble_layer
from lj_image.builders.oci.recipe import LayerRecipe
from lj_image.errors import BuildError

_WORTH_A_PROCESS_BYTES: Final = 4 * 1024 * 1024
"""Less is assembled here before another process has started."""

Done = Callable[[int, CachedLayer], None]


def assemble_layers(
    recipes: Sequence[tuple[LayerRecipe, int]], cache_dir: Path, *, workers: int | None, done: Done, anew: bool = False
) -> tuple[CachedLayer, ...]:
    """Return the layers of recipes, in their order; `done` is told of each as it is finished.

    Each recipe comes with the bytes it is made from, and the largest begins first. Raises what a layer raises; the
    others that were begun are kept in the cache.
    """
    wanted = min(workers or _processors(), len(recipes))
    if wanted <= 1 or sum(size for _, size in recipes) < _WORTH_A_PROCESS_BYTES:
        return tuple(_here(recipes, cache_dir, done, anew))
    found: dict[int, CachedLayer] = {}
    order = sorted(range(len(recipes)), key=lambda number: (-recipes[number][1], number))
    with pool_for(wanted) as pool:
        running = {pool.submit(assemble_layer, recipes[number][0], cache_dir, anew): number for number in order}
        try:
            for number, layer in _finished(running):
                found[number] = layer
                done(number, layer)
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return tuple(found[number] for number in range(len(recipes)))


def pool_for(jobs: int, workers: int | None = None) -> ProcessPoolExecutor:
    """Return a pool with a process for each processor that may be used, and no more than there are jobs."""
    return ProcessPoolExecutor(min(workers or _processors(), jobs), mp_context=_context())


def _here(recipes: Sequence[tuple[LayerRecipe, int]], cache_dir: Path, done: Done, anew: bool) -> Iterator[CachedLayer]:
    for number, (recipe, _) in enumerate(recipes):
        layer = assemble_layer(recipe, cache_dir, anew)
        done(number, layer)
        yield layer


def _finished(running: dict[Future[CachedLayer], int]) -> Iterator[tuple[int, CachedLayer]]:
    left = set(running)
    while left:
        ended, left = wait(left, return_when=FIRST_COMPLETED)
        for future in ended:
            try:
                yield running[future], future.result()
            except BrokenProcessPool:
                raise BuildError(
                    "a process that assembled a layer was killed",
                    hint="most often by the kernel for lack of memory; finished layers are kept: run the build again",
                ) from None


def _processors() -> int:
    """Return how many processors this process may use, which in a container are fewer than there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _context() -> multiprocessing.context.BaseContext:
    """Fork where nothing but this thread runs, which takes milliseconds; else start afresh."""
    can_fork = "fork" in multiprocessing.get_all_start_methods() and threading.active_count() == 1
    return multiprocessing.get_context("fork" if can_fork else "spawn")
