"""What every command starts from: the catalog, the config, and how to show things. Everything is read late."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from lj_image.catalog.catalog import Catalog
    from lj_image.catalog.release import Release
    from lj_image.config import Config
    from lj_image.lock.lock import Lock
    from lj_image.lock.store import ArtifactStore
    from lj_image.plan import Plan
    from lj_image.snapshot import Snapshots


class App:
    """The state of one run of the command line; a plain class, since this is loaded for every `--help`."""

    def __init__(self, images_dir: str | None = None) -> None:
        self.images_dir = images_dir
        self.debug = False
        """Whether a failure is shown with its traceback."""

    @cached_property
    def catalog(self) -> Catalog:
        """The catalog at or above the current folder."""
        from pathlib import Path

        from lj_image.catalog.catalog import find_catalog

        return find_catalog(Path.cwd(), self.images_dir)

    @cached_property
    def config(self) -> Config:
        """The config in force; rules that change an address are shown when it is first used."""
        from lj_image.config import load_config

        config = load_config(snapshots=self.snapshots)
        for rule in config.in_force():
            self.say(f"config: {rule}")
        return config

    @cached_property
    def snapshots(self) -> Snapshots:
        """What earlier runs have read; where the cache is by default, since the config itself is among it."""
        from lj_image.config import default_cache_dir
        from lj_image.snapshot import Snapshots

        return Snapshots(default_cache_dir() / "snapshots")

    @cached_property
    def store(self) -> ArtifactStore:
        """The artifact store of this machine."""
        from lj_image.lock.store import ArtifactStore

        return ArtifactStore(self.config.cache_dir)

    def release(
        self,
        name: str,
        variant: str | None = None,
        *,
        platform: str | None = None,
        overridden: Mapping[str, str] | None = None,
        only_configured: bool = True,
        base_known: bool = True,
    ) -> Release:
        """Resolve a release of the catalog; see `catalog.resolve.resolve`."""
        from lj_image.catalog.release import Platform
        from lj_image.catalog.resolved import resolve_once

        return resolve_once(
            self.catalog,
            self.config,
            self.snapshots,
            name,
            variant=variant,
            platform=Platform.parse(platform) if platform else None,
            overridden=overridden,
            only_configured=only_configured,
            base_known=base_known,
        )

    def lock(self, release: Release) -> Lock:
        """Read the lock of a release; raises LockError when it is missing or stale."""
        from lj_image.lock.lockfile import lock_path
        from lj_image.lock.staleness import require_fresh

        return require_fresh(release, lock_path(release))

    def plan(self, release: Release, only: Iterable[str] = ()) -> Plan:
        """Compute the plan of a locked release."""
        from lj_image.plan import plan

        return plan(release, self.lock(release), only=only)

    def say(self, line: str) -> None:
        """Tell the user something while the command goes on; never part of its result."""
        print(line, file=sys.stderr, flush=True)

    def print(self, line: str = "") -> None:
        """Print a line of the result."""
        print(line, flush=True)

    def print_json(self, value: Any) -> None:
        """Print the result for machines."""
        import json

        print(json.dumps(value, indent=2, ensure_ascii=False, default=str), flush=True)

    def print_table(self, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Print a table, as wide as its contents."""
        for line in table_lines(header, rows):
            self.print(line)


def table_lines(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lay out a table in plain text; a number is set to the right."""
    table = [tuple(header), *(tuple(row) for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    return ["  ".join(map(_cell, row, widths)).rstrip() for row in table]


def _cell(text: str, width: int) -> str:
    is_number = text.replace(",", "").replace(".", "").strip().isdigit()
    return text.rjust(width) if is_number and text.count(".") <= 1 and "," in text else text.ljust(width)


def is_terminal(stream: TextIO) -> bool:
    """Say whether a person watches this stream."""
    return stream.isatty()
