"""Several layers are assembled at once, each in a process of its own; the order of finishing decides nothing."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing.connection import wait as wait_for_any
from pathlib import Path
from typing import Final, TypeVar

from lj_image.builders.oci.layer_cache import CachedLayer
from lj_image.builders.oci.layer_job import assemble_layer
from lj_image.builders.oci.processors import processors
from lj_image.builders.oci.recipe import LayerRecipe
from lj_image.errors import BuildError

_WORTH_A_PROCESS_BYTES: Final = 4 * 1024 * 1024
"""Less is assembled here before another process has started."""

Done = Callable[[int, CachedLayer], None]
Job = TypeVar("Job")


def assemble_layers(
    recipes: Sequence[tuple[LayerRecipe, int]], cache_dir: Path, *, workers: int | None, done: Done, anew: bool = False
) -> tuple[CachedLayer, ...]:
    """Return the layers of recipes, in their order; `done` is told of each as it is finished.

    Each recipe comes with the bytes it is made from, and the largest begins first. Raises what a layer raises; the
    others that were begun are kept in the cache.
    """
    return make_side_by_side(
        recipes, partial(assemble_layer, cache_dir=cache_dir, anew=anew), workers=workers, done=done
    )


def make_side_by_side(
    jobs: Sequence[tuple[Job, int]], make: Callable[[Job], CachedLayer], *, workers: int | None, done: Done
) -> tuple[CachedLayer, ...]:
    """Return the layer that each job makes, in their order; a job comes with how many bytes it has to do.

    Raises what `make` raises, which has to be a function that another process can find.
    """
    wanted = min(workers or processors(), len(jobs))
    if wanted <= 1 or sum(size for _, size in jobs) < _WORTH_A_PROCESS_BYTES:
        return tuple(_here(jobs, make, done))
    found: dict[int, CachedLayer] = {}
    order = sorted(range(len(jobs)), key=lambda number: (-jobs[number][1], number))
    with pool_for(wanted) as pool:
        running = {pool.submit(make, jobs[number][0]): number for number in order}
        try:
            for number, layer in _finished(running):
                found[number] = layer
                done(number, layer)
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return tuple(found[number] for number in range(len(jobs)))


def pool_for(jobs: int, workers: int | None = None) -> ProcessPoolExecutor:
    """Return a pool with a process for each processor that may be used, and no more than there are jobs."""
    return ProcessPoolExecutor(min(workers or processors(), jobs), mp_context=_context(), initializer=_begin)


def _begin() -> None:
    """Let a process end quietly by Ctrl-C, also while it waits for work, and as soon as the one that began it is gone.

    Nobody else would ever give it work or end it.
    """
    signal.signal(signal.SIGINT, lambda number, frame: sys.exit(128 + number))
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_await_end, args=(parent.sentinel,), daemon=True).start()


def _await_end(sentinel: int) -> None:
    wait_for_any([sentinel])
    os._exit(1)


def _here(jobs: Sequence[tuple[Job, int]], make: Callable[[Job], CachedLayer], done: Done) -> Iterator[CachedLayer]:
    for number, (job, _) in enumerate(jobs):
        layer = make(job)
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
                    "a process that made a layer was killed",
                    hint="most often by the kernel for lack of memory; finished layers are kept: run the build again",
                ) from None


def _context() -> multiprocessing.context.BaseContext:
    """Fork where nothing but this thread runs, which takes milliseconds; else start afresh."""
    can_fork = "fork" in multiprocessing.get_all_start_methods() and threading.active_count() == 1
    return multiprocessing.get_context("fork" if can_fork else "spawn")
