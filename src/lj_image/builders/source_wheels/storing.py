"""A wheel that was just built -> the artifact store: what both ways of building do with what they get."""

from __future__ import annotations

from pathlib import Path

from lj_image.builders.source_wheels.canonical import write_canonical
from lj_image.builders.source_wheels.notes import is_pure, require_named
from lj_image.lock.lock import Artifact, LockedDistribution
from lj_image.lock.store import CHUNK_BYTES, ArtifactStore


def stored(wheel: Path, item: LockedDistribution, store: ArtifactStore) -> Artifact:
    """Put a wheel into the store; raises BuildError unless it is the one of `item`.

    A pure one is written anew, so that it is the same whichever way it was built. A compiled one is that of its
    container alone, and stays as it is.
    """
    require_named(wheel.name, item)
    if is_pure(wheel.name):
        canonical = wheel.with_suffix(".canonical")
        with canonical.open("wb") as target:
            write_canonical(wheel, target)
        canonical.replace(wheel)
    with wheel.open("rb") as content:
        return store.add(iter(lambda: content.read(CHUNK_BYTES), b""), wheel.name, "wheel")
