"""The locked files of a plan are brought into the artifact store, for whichever builder."""

from __future__ import annotations

from lj_image.config import Config
from lj_image.lock.progress import Progress
from lj_image.lock.store import ArtifactStore
from lj_image.plan import Plan


def fetch_missing(plan: Plan, config: Config, store: ArtifactStore, progress: Progress) -> None:
    """Load what is missing; the HTTP client is imported only for that. Raises ArtifactError."""
    files = plan.locked()
    if store.missing(item.artifact for item in files):
        from lj_image.lock.fetch import fetch

        fetch(files, config, store, progress)
