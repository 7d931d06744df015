"""What the artifact store holds, which locks name it, and whether its bytes are still the right ones."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from lj_image.catalog.catalog import Catalog
from lj_image.lock.built_wheels import BuiltWheel
from lj_image.lock.lock import Lock
from lj_image.lock.lockfile import read_lock
from lj_image.lock.progress import Progress, Silent
from lj_image.lock.store import ArtifactStore, sha256_of

MOST_THREADS: Final = 8
SHA256: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Use:
    """What is known of a digest from elsewhere."""

    file: str
    locks: tuple[str, ...]
    """Such as `training-nv-pytorch/25.02-open`; none for what was built from a source that no lock names."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A complete file of the store."""

    sha256: str
    path: Path
    size_bytes: int
    last_used: float
    """Seconds since 1970; what the file system knows of the last reading or writing."""
    file: str | None = None
    """Its name, where a lock or a note of ours says it."""
    locks: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return what `--json` prints of it."""
        return {"sha256": self.sha256, "file": self.file, "size_bytes": self.size_bytes, "locks": list(self.locks)}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of hashing the whole store again."""

    files: int
    size_bytes: int
    dropped: tuple[Entry, ...] = field(default=())
    """Those that were not what their digest says; they are gone now."""


def locks_of(catalog: Catalog) -> dict[str, Lock]:
    """Read every lock of a catalog, also of releases that it no longer has; raises LockError for a damaged one."""
    return {
        f"{name}/{path.stem}": read_lock(path)
        for name in catalog.family_names
        for path in sorted((catalog.root / name / "locks").glob("[!.]*.txt"))
    }


def uses_of(locks: Mapping[str, Lock], built: Iterable[BuiltWheel]) -> dict[str, Use]:
    """Return what is known of each digest; a wheel that was built here is used by the locks of its source."""
    names: dict[str, str] = {}
    users: dict[str, list[str]] = {}
    for key, lock in locks.items():
        for artifact in lock.artifacts():
            names[artifact.sha256] = artifact.file
            users.setdefault(artifact.sha256, []).append(key)
    for wheel in built:
        names.setdefault(wheel.sha256, wheel.file)
        users.setdefault(wheel.sha256, []).extend(users.get(wheel.source_sha256, ()))
    return {sha256: Use(file, tuple(dict.fromkeys(users.get(sha256, ())))) for sha256, file in names.items()}


def contents(store: ArtifactStore, uses: Mapping[str, Use]) -> tuple[Entry, ...]:
    """Return every complete file, largest first."""
    found = (_entry(path, uses.get(path.name)) for path in _files(store) if SHA256.fullmatch(path.name))
    return tuple(sorted(filter(None, found), key=lambda entry: (-entry.size_bytes, entry.sha256)))


def last_used(path: Path) -> float:
    """Return when a file was last read or written; most systems note the reading once a day."""
    seen = path.stat()
    return max(seen.st_atime, seen.st_mtime)


def verify(store: ArtifactStore, entries: Iterable[Entry], progress: Progress | None = None) -> Verdict:
    """Hash every file again, in parallel, and drop those that are not what their digest says."""
    entries = tuple(entries)
    progress = progress or Silent()
    total = sum(entry.size_bytes for entry in entries)
    progress.start(total, f"hashing {len(entries)} files")

    def is_right(entry: Entry) -> bool:
        right = _matches(entry)
        progress.advance(entry.size_bytes)
        return right

    pool = ThreadPoolExecutor(min(MOST_THREADS, os.cpu_count() or 1), thread_name_prefix="hash")
    try:
        suspects = [entry for entry, right in zip(entries, pool.map(is_right, entries), strict=True) if not right]
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        progress.done()
    if suspects:
        store.prepare()
    return Verdict(len(entries), total, tuple(entry for entry in suspects if _dropped(entry, store)))


def _files(store: ArtifactStore) -> Iterator[Path]:
    return (store.root / "sha256").glob("??/*")


def _entry(path: Path, use: Use | None) -> Entry | None:
    try:
        size, at = path.stat().st_size, last_used(path)
    except FileNotFoundError:  # somebody cleans up at the same time
        return None
    return Entry(path.name, path, size, at, use.file if use else None, use.locks if use else ())


def _matches(entry: Entry) -> bool:
    try:
        return sha256_of(entry.path) == entry.sha256
    except FileNotFoundError:
        return True  # gone meanwhile, by other hands
    except OSError:
        return False


def _dropped(entry: Entry, store: ArtifactStore) -> bool:
    """Drop a file unless its writer has mended it meanwhile."""
    with store.writing(entry.sha256):
        if _matches(entry):
            return False
        store.drop(entry.sha256)
        return True
