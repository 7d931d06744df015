"""Which blobs a destination lacks: it has them, or is given them by another repository of its registry, or neither."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Literal

from lj_image.oci.content import Blob
from lj_image.registry.transfer.delivery import Destination
from lj_image.registry.uploading.presence import is_present, mount

Found = Literal["existing", "mounted", "missing"]
_AT_ONCE: Final = 6
"""Questions to one destination: many small answers, each a way to a far region and back."""


def ask_for_all(destination: Destination, blobs: Sequence[Blob], is_abandoned: Callable[[], bool]) -> dict[Blob, Found]:
    """Ask for every blob; raises RegistryError where the registry refuses or does not answer, CutOff.

    The first question is asked alone: it brings the login that the others use, or the one refusal of it.
    """

    has_failed = threading.Event()

    def found(blob: Blob) -> Found:
        if is_abandoned() or has_failed.is_set():
            return "missing"
        try:
            return ask_for(destination, blob)
        except BaseException:
            has_failed.set()  # the rest would only meet the same, and as slowly
            raise

    if not blobs:
        return {}
    first = found(blobs[0])
    with ThreadPoolExecutor(_AT_ONCE, f"ask {destination.name}") as pool:
        return {blobs[0]: first, **dict(zip(blobs[1:], pool.map(found, blobs[1:]), strict=True))}


def ask_for(destination: Destination, blob: Blob) -> Found:
    """Ask for a blob, and have it mounted where another repository of the registry has it; raises as `ask_for_all`."""
    registry, repository = destination.registry, destination.repository
    if is_present(registry, repository, blob.descriptor):
        return "existing"
    host, _, other = blob.origin.partition("/")
    is_here = host == registry.host and other != repository and registry.capabilities.mount
    return "mounted" if is_here and mount(registry, repository, blob.descriptor.digest, other) else "missing"
