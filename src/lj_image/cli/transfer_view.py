"""How publishing to several places is shown while it goes on: a bar each on a terminal, lines in a log."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TextIO

from lj_image.cli.app import is_terminal

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from lj_image.errors import LjImageError
    from lj_image.registry.transfer.delivery import Destination, TransferWatcher

_MIB: Final = 1024 * 1024
_EVERY_S: Final = 5.0
"""How often a place that goes on gets a line."""


def transfer_view(stream: TextIO) -> TransferWatcher:
    """Return what suits a stream: live on a terminal, else one line per place every few seconds."""
    return BarView(stream) if is_terminal(stream) else LineView(stream)


class LineView:
    """A line per place when it begins, every few seconds, and when it ends: for CI logs."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._clock = stream, clock
        self._lock = threading.Lock()
        self._places: dict[Destination, _Course] = {}

    def expects(self, destination: Destination, total_bytes: int) -> None:
        """Say how much a place lacks."""
        with self._lock:
            self._places[destination] = _Course(total_bytes, self._clock())
            self._print(destination, f"{total_bytes / _MIB:,.1f} MiB to send")

    def advances(self, destination: Destination, by_bytes: int) -> None:
        """Say now and then how far a place is."""
        with self._lock:
            course = self._places.setdefault(destination, _Course(0, self._clock()))
            course.sent_bytes += by_bytes
            now = self._clock()
            if now - course.told_at >= _EVERY_S:
                course.told_at = now
                self._print(destination, course.words(now))

    def says(self, destination: Destination, words: str) -> None:
        """Print what happened."""
        with self._lock:
            self._print(destination, words)

    def settles(self, destination: Destination, error: LjImageError | None) -> None:
        """Say that a place has it, or why not."""
        with self._lock:
            self._print(destination, "published" if error is None else f"failed: {error.message}")

    def _print(self, destination: Destination, words: str) -> None:
        print(f"  {destination.name}: {words}", file=self._stream, flush=True)


class _Course:
    def __init__(self, total_bytes: int, now: float) -> None:
        self.total_bytes, self.sent_bytes = total_bytes, 0
        self.began_at = self.told_at = now

    def words(self, now: float) -> str:
        rate = self.sent_bytes / max(now - self.began_at, 1e-3)
        share = self.sent_bytes / self.total_bytes if self.total_bytes else 1.0
        left_s = (self.total_bytes - self.sent_bytes) / rate if rate > 0 else float("inf")
        ends = f", {left_s:,.0f} s left" if left_s < 1e6 else ""
        return f"{share:.0%} of {self.total_bytes / _MIB:,.1f} MiB, {rate / _MIB:,.1f} MiB/s{ends}"


class BarView:
    """A bar per place, with bytes, rate and what is left."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._bars: Progress | None = None
        self._tasks: dict[Destination, TaskID] = {}

    def expects(self, destination: Destination, total_bytes: int) -> None:
        """Draw a place's bar."""
        with self._lock:
            bars = self._begun()
            self._tasks[destination] = bars.add_task(destination.name, total=total_bytes, words="")

    def advances(self, destination: Destination, by_bytes: int) -> None:
        """Move the bar, back as well."""
        if self._bars is not None and destination in self._tasks:
            self._bars.advance(self._tasks[destination], by_bytes)

    def says(self, destination: Destination, words: str) -> None:
        """Show the last thing that happened beside the bar."""
        if self._bars is not None and destination in self._tasks:
            self._bars.update(self._tasks[destination], words=words)

    def settles(self, destination: Destination, error: LjImageError | None) -> None:
        """End the bar; when the last one ended, all of them go."""
        with self._lock:
            if self._bars is None or destination not in self._tasks:
                return
            self._bars.update(self._tasks.pop(destination), words="published" if error is None else "failed")
            if not self._tasks:
                self._bars.stop()
                self._bars = None

    def _begun(self) -> Progress:
        if self._bars is None:
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                DownloadColumn,
                Progress,
                TextColumn,
                TimeRemainingColumn,
                TransferSpeedColumn,
            )

            columns = (
                TextColumn("  {task.description}", markup=False),
                BarColumn(),
                DownloadColumn(binary_units=True),
                TransferSpeedColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[words]}", markup=False),
            )
            self._bars = Progress(*columns, console=Console(file=self._stream), transient=True)
            self._bars.start()
        return self._bars
