"""Blobs -> destinations: each read once, sent to all that lack it in step, and none waits long for another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from lj_image.oci.content import Blob
from lj_image.registry.client import Registry
from lj_image.registry.transfer.delivery import UNWATCHED, Destination, Transfer, TransferWatcher
from lj_image.registry.transfer.run import Run
from lj_image.registry.uploading.journal import Journal

MIB: Final = 1024 * 1024


def transfer(
    blobs: Sequence[Blob],
    destinations: Sequence[Destination],
    *,
    watcher: TransferWatcher = UNWATCHED,
    journal: Journal | None = None,
    sources: Iterable[Registry] = (),
    window_bytes: int = 16 * MIB,
    parallel: int = 3,
) -> Transfer:
    """Bring blobs to destinations, and say what became of each; what fails at one changes nothing at the others.

    Up to `parallel` blobs go at once, each with up to `window_bytes` of it in memory. `sources` are registries that
    blobs are read from: they are cut off, as those of the destinations are, when all has to end.
    Raises ArtifactError where a blob cannot be read or has other bytes than it should, before any registry was given
    all of it; KeyboardInterrupt as it came. Then every connection is cut off, and no thread is left.
    """
    run = Run(blobs, destinations, watcher, journal, sources, window_bytes=window_bytes, parallel=max(1, parallel))
    return run.finished()
