"""Blobs -> destinations."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from lj_image.errors import LjImageError
from lj_image.oci.content import Blob
from lj_image.oci.descriptor import Descriptor
from lj_image.registry.transfer.delivery import UNWATCHED, Delivery, Destination, Transfer, TransferWatcher
from lj_image.registry.uploading.body import pieces_of
from lj_image.registry.uploading.journal import Journal
from lj_image.registry.uploading.upload import bring_blob

PARALLEL: Final = 3
"""Blobs at once."""


def transfer(
    blobs: Sequence[Blob],
    destinations: Sequence[Destination],
    *,
    watcher: TransferWatcher = UNWATCHED,
    journal: Journal | None = None,
    parallel: int = PARALLEL,
) -> Transfer:
    """Bring blobs to destinations."""

    def one(destination: Destination) -> Delivery:
        started, sent = time.monotonic(), 0
        try:
            for blob in blobs:
                sent += bring_blob(
                    destination.registry, destination.repository, _Reader(blob), origin=blob.origin
                ).sent_bytes
        except LjImageError as error:
            watcher.settles(destination, error)
            return Delivery(destination, error)
        watcher.settles(destination, None)
        return Delivery(destination, None, sent_bytes=sent, seconds=time.monotonic() - started)

    with ThreadPoolExecutor(len(destinations)) as pool:
        return Transfer(tuple(pool.map(one, destinations)), 0, 0)


@dataclass(frozen=True)
class _Reader:
    blob: Blob

    @property
    def descriptor(self) -> Descriptor:
        return self.blob.descriptor

    def pieces(self, start: int, end: int) -> Iterable[bytes]:
        with self.blob.open_at(start) as stream:
            yield from pieces_of(stream, end - start, "blob")
