"""A lock for a try: versions set on the command line are resolved, and nothing is written into the catalog."""

from __future__ import annotations

from lj_image.catalog.release import Release
from lj_image.config import Config
from lj_image.lock.lock import Lock
from lj_image.lock.lockfile import lock_path, read_lock
from lj_image.lock.progress import progress_for
from lj_image.lock.resolve import resolve


def lock_for(release: Release, config: Config) -> Lock:
    """Resolve a release with overridden versions, keeping what the committed lock says of everything else."""
    path = lock_path(release)
    previous = read_lock(path) if path.exists() else None
    return resolve(release, config, previous=previous, progress=progress_for())
