"""How a long transfer tells that it is alive: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Protocol, TextIO

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as RichBars

MIB = 1024 * 1024


class Progress(Protocol):
    """What lock and fetch ask of a display; `advance` is called from several threads."""

    def start(self, total_bytes: int, title: str) -> None:
        """Begin a task; 0 bytes means that the size is not known."""

    def advance(self, n: int) -> None:
        """Count bytes; negative when a transfer has to begin again."""

    def done(self) -> None:
        """End the task; also after a failure."""


class Silent:
    """Shows nothing."""

    def start(self, total_bytes: int, title: str) -> None:
        """Begin a task."""

    def advance(self, n: int) -> None:
        """Count bytes."""

    def done(self) -> None:
        """End the task."""


class Lines:
    """Plain lines, at most one per `interval_s`: for logs of CI."""

    def __init__(self, stream: TextIO | None = None, *, interval_s: float = 5.0) -> None:
        self._stream = stream or sys.stderr
        self._interval_s = interval_s
        self._guard = threading.Lock()
        self._title, self._total, self._count, self._began, self._shown = "", 0, 0, 0.0, 0.0

    def start(self, total_bytes: int, title: str) -> None:
        """Begin a task and print its first line."""
        self._title, self._total, self._count = title, total_bytes, 0
        self._began = self._shown = time.monotonic()
        self._print(f"{title} ({total_bytes / MIB:,.1f} MiB)" if total_bytes else title)

    def advance(self, n: int) -> None:
        """Count bytes, and print a line when the last one is old enough."""
        with self._guard:
            self._count += n
            now = time.monotonic()
            if now - self._shown < self._interval_s:
                return
            self._shown = now
            of_total = f" of {self._total / MIB:,.1f}" if self._total else ""
            line = f"{self._title}: {self._count / MIB:,.1f}{of_total} MiB"
        self._print(line)

    def done(self) -> None:
        """Print how much came in which time."""
        if self._count:
            self._print(f"{self._title}: {self._count / MIB:,.1f} MiB in {time.monotonic() - self._began:.1f} s")

    def _print(self, line: str) -> None:
        print(line, file=self._stream, flush=True)


class Bars:
    """A live bar with speed and remaining time, for a terminal."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console
        self._bars: RichBars | None = None

    def start(self, total_bytes: int, title: str) -> None:
        """Begin a task and show its bar."""
        from rich import progress  # late: it costs 60 ms that a command without a transfer need not pay
        from rich.console import Console

        columns = (
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.DownloadColumn(binary_units=True),
            progress.TransferSpeedColumn(),
            progress.TimeRemainingColumn(),
        )
        self.done()
        self._bars = progress.Progress(*columns, console=self._console or Console(stderr=True), transient=True)
        self._bars.start()
        self._bars.add_task(title, total=total_bytes or None)

    def advance(self, n: int) -> None:
        """Move the bar."""
        if self._bars is not None:
            self._bars.advance(self._bars.task_ids[0], n)

    def done(self) -> None:
        """Take the bar away."""
        if self._bars is not None:
            self._bars.stop()
            self._bars = None


def progress_for(stream: TextIO | None = None) -> Progress:
    """Return bars for a terminal and lines for anything else."""
    stream = stream or sys.stderr
    return Bars() if stream.isatty() else Lines(stream)
