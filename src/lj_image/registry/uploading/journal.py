"""Where uploads stood when a process ended: a hint for the next one, which asks the registry.

Lines of JSON, each on the disk before the next byte goes out; the newest of an upload counts. An address of an upload
lets whoever knows it write, so the file is its owner's alone.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from filelock import FileLock, Timeout

FILE: Final = "uploads.jsonl"
_LONGEST_S: Final = 24 * 3600.0
"""Registries forget an upload after days; what is older than this is as good as lost."""
_MODE: Final = 0o600


@dataclass(frozen=True, slots=True)
class Place:
    """Which blob goes where."""

    host: str
    repository: str
    digest: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class _Entry:
    location: str
    offset: int
    at: float


class Journal:
    """The uploads of one process at a time; threads share it. A second process goes on without: `open` says so."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self._file, self._clock = folder / FILE, clock
        self._lock = threading.Lock()
        self._entries: dict[Place, _Entry] = {}
        self._target: Any = None
        self._alone = FileLock(folder / f".{FILE}.lock")

    @classmethod
    def open(cls, folder: Path, clock: Callable[[], float] = time.time) -> Journal | None:
        """Read what is there; None where another process uses it, or where nothing can be written."""
        journal = cls(folder, clock)
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            journal._alone.acquire(blocking=False)
        except (Timeout, OSError):
            return None
        try:
            journal._begin()
        except OSError:
            journal.close()
            return None
        return journal

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let the next process have it."""
        with self._lock:
            if self._target is not None:
                self._target.close()
                self._target = None
        self._alone.release()

    def location(self, place: Place) -> str | None:
        """Return where the upload of a blob went on when it was last noted."""
        with self._lock:
            entry = self._entries.get(place)
        return entry.location if entry else None

    def note(self, place: Place, location: str, offset: int) -> None:
        """Keep where an upload stands; on the disk when this returns."""
        self._add(place, _Entry(location, offset, self._clock()))

    def forget(self, place: Place) -> None:
        """Keep that an upload is over."""
        if place in self._entries:
            self._add(place, None)

    def _add(self, place: Place, entry: _Entry | None) -> None:
        with self._lock:
            if entry is None:
                self._entries.pop(place, None)
            else:
                self._entries[place] = entry
            if self._target is not None:
                self._write(self._target, place, entry)
                os.fsync(self._target.fileno())

    def _begin(self) -> None:
        """Write what still counts into a new file, which takes the old one's place; then add to it."""
        self._entries = self._read()
        partial = self._file.with_suffix(".partial")
        partial.unlink(missing_ok=True)
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
        self._target = os.fdopen(descriptor, "w", encoding="utf-8")
        for place, entry in self._entries.items():
            self._write(self._target, place, entry)
        os.fsync(descriptor)
        partial.replace(self._file)

    def _read(self) -> dict[Place, _Entry]:
        try:
            lines = self._file.read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return {}
        found: dict[Place, _Entry] = {}
        for line in lines:
            try:  # the last line of a process that was killed may be half a line
                place, entry = _parsed(json.loads(line))
            except (ValueError, KeyError, TypeError):
                continue
            found.pop(place, None)
            if entry is not None and self._clock() - entry.at < _LONGEST_S:
                found[place] = entry
        return found

    @staticmethod
    def _write(target: Any, place: Place, entry: _Entry | None) -> None:
        values = asdict(place) | {"upload": asdict(entry) if entry else None}
        target.write(json.dumps(values) + "\n")
        target.flush()


def _parsed(values: dict[str, Any]) -> tuple[Place, _Entry | None]:
    place = Place(str(values["host"]), str(values["repository"]), str(values["digest"]), int(values["size_bytes"]))
    upload = values["upload"]
    if upload is None:
        return place, None
    return place, _Entry(str(upload["location"]), int(upload["offset"]), float(upload["at"]))
