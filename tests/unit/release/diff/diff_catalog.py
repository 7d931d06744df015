"""Two locked releases of the small family, and the store with what one of them needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.release import Release
from lj_image.catalog.resolve import resolve
from lj_image.config import Config
from lj_image.lock.inputs import inputs_of
from lj_image.lock.lock import Artifact, LockedDistribution
from lj_image.lock.lockfile import lock_path, with_digest, write_lock
from lj_image.lock.store import ArtifactStore
from samples.locks import made_up_lock

NEXT = """\
release: "25.03"
previous: "25.02"
components:
  tool: {version: 1.4.1+ali, downgrade: {en: 1.4.2 was withdrawn, zh: 1.4.2 已撤回}}
  library: 2.23.4.12
variants:
  open: {components: {library: 2.24.0.1}}
"""
"""The tool goes down, with a reason; the library goes up."""


@dataclass(frozen=True)
class Bench:
    """A catalog with what belongs to it."""

    catalog: Catalog
    config: Config

    def release(self, name: str, variant: str = "open", **options: object) -> Release:
        """Resolve a release."""
        return resolve(self.catalog, self.config, name, variant=variant, only_configured=False, **options)  # type: ignore[arg-type]

    def lock(
        self, name: str, more: Iterable[LockedDistribution] = (), artifacts: Mapping[str, Artifact] | None = None
    ) -> Release:
        """Write a fresh lock of a release's open variant; `artifacts` replaces files by distribution."""
        release, artifacts = self.release(name), artifacts or {}
        lock = made_up_lock(release, more=more)
        distributions = tuple(
            replace(item, artifact=artifacts.get(item.name, item.artifact)) for item in lock.distributions
        )
        lock = replace(lock, distributions=distributions, inputs=inputs_of(release))
        write_lock(with_digest(lock), lock_path(release))
        return release

    def store(self, wheel: tuple[str, bytes]) -> Artifact:
        """Put a wheel into the store."""
        return ArtifactStore(self.config.cache_dir).add([wheel[1]], wheel[0], "wheel")


def bench(write_catalog: Callable[..., Catalog], tmp_path: Path, config: Config) -> Bench:
    """Write 25.02 and 25.03, without locks."""
    return Bench(write_catalog(r25_03=NEXT), config)
