"""Shows a build to a person at a terminal, to a CI log, or to a program."""

from __future__ import annotations

import json
import re
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, TextIO

from lj_image.builders.docker.events import BuildWarning, LogLine, Observer, Progress, Step, StepState

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.table import Table

WORTH_SHOWING_S: Final = 1.0  # the engine's own steps interest nobody unless they take time
SHOWN_LOG_LINES: Final = 6
SHOWN_STEPS: Final = 8  # of those that run at the same time
MARKS: Final = {
    StepState.PLANNED: ("·", "dim"),
    StepState.RUNNING: ("▸", "cyan"),
    StepState.DONE: ("✓", "green"),
    StepState.CACHED: ("=", "blue"),
    StepState.FAILED: ("✗", "red"),
}
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f]")


@contextmanager
def view(stream: TextIO | None = None, *, as_json: bool = False) -> Iterator[Observer]:
    """Give the observer that suits `stream` (stderr by default): live on a terminal, else one line per event."""
    stream = stream or sys.stderr
    if as_json:
        yield JsonView(stream)
    elif stream.isatty():
        with LiveView(stream) as live:
            yield live
    else:
        yield PlainView(stream)


class PlainView:
    """One line per change and per log line, for logs that are read later."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._written: set[tuple[str, StepState]] = set()

    def step_changed(self, step: Step) -> None:
        """Write the step's state and title, and what it took; engines may report one state again."""
        if step.state is StepState.PLANNED or not _worth_showing(step):
            return
        if (step.id, step.state) not in self._written:
            self._written.add((step.id, step.state))
            self._write(f"{step.state:<8} {step.title}{_cost(step)}")

    def log_line(self, line: LogLine) -> None:
        """Write the line behind the title of its step."""
        self._write(f"{line.step.title if line.step else 'build'} | {_clean(line.text)}")

    def progress(self, progress: Progress) -> None:
        """Write nothing: a log needs no moving numbers."""

    def warning(self, warning: BuildWarning) -> None:
        """Write the advice, with its address."""
        self._write(f"warning  {_advice(warning)}")

    def _write(self, text: str) -> None:
        print(text, file=self._stream, flush=True)


class JsonView:
    """One JSON object per event and line; `event` tells which it is."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr

    def step_changed(self, step: Step) -> None:
        """Write all fields of the step."""
        self._write("step", asdict(step))

    def log_line(self, line: LogLine) -> None:
        """Write the line and its step's id."""
        self._write("log", {"step": _id(line.step), "stream": line.stream, "text": line.text})

    def progress(self, progress: Progress) -> None:
        """Write how far the transfer is, in bytes."""
        sizes = {"current_bytes": progress.current_bytes, "total_bytes": progress.total_bytes}
        self._write("progress", {"step": progress.step.id, "name": progress.name, **sizes})

    def warning(self, warning: BuildWarning) -> None:
        """Write the advice and its step's id."""
        self._write("warning", {"step": _id(warning.step), "text": warning.text, "url": warning.url})

    def _write(self, event: str, fields: dict[str, Any]) -> None:
        print(json.dumps({"event": event, **fields}, ensure_ascii=False), file=self._stream, flush=True)


class LiveView:
    """What has ended scrolls away; what runs stays below, with seconds, bytes and its last lines."""

    def __init__(self, stream: TextIO | None = None, console: Console | None = None) -> None:
        from rich.console import Console as RichConsole  # late: it costs a tenth of a second to load
        from rich.live import Live

        self._console = console or RichConsole(file=stream or sys.stderr)
        self._running: dict[str, tuple[Step, float]] = {}
        self._planned: dict[str, Step] = {}
        self._transfers: dict[str, Progress] = {}
        self._tail: deque[LogLine] = deque(maxlen=SHOWN_LOG_LINES)
        self._ended: set[str] = set()
        # last, for it draws at once
        self._live = Live(console=self._console, get_renderable=self._draw, refresh_per_second=8, transient=True)

    def __enter__(self) -> LiveView:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.clear()
        self._planned.clear()
        self._tail.clear()
        self._live.stop()

    def step_changed(self, step: Step) -> None:
        """Move the step to where its state belongs."""
        self._planned.pop(step.id, None)
        began = self._running.pop(step.id, (step, time.monotonic()))[1]
        match step.state:
            case StepState.PLANNED:
                self._planned[step.id] = step
            case StepState.RUNNING:
                self._running[step.id] = step, began
            case StepState.DONE | StepState.CACHED | StepState.FAILED:
                self._end(step)

    def log_line(self, line: LogLine) -> None:
        """Keep the line for the last lines of what is running."""
        self._tail.append(line)

    def progress(self, progress: Progress) -> None:
        """Keep how far the step is."""
        self._transfers[progress.step.id] = progress

    def warning(self, warning: BuildWarning) -> None:
        """Let the advice scroll by."""
        self._print(f"! {_advice(warning)}", "yellow")

    def _end(self, step: Step) -> None:
        self._transfers.pop(step.id, None)
        self._tail = deque((line for line in self._tail if _id(line.step) != step.id), maxlen=SHOWN_LOG_LINES)
        if _worth_showing(step) and step.id not in self._ended:
            self._ended.add(step.id)
            mark, style = MARKS[step.state]
            self._print(f"{mark} {_clean(step.title)}{_cost(step)}", style)

    def _print(self, text: str, style: str) -> None:
        from rich.text import Text

        self._console.print(Text(text, style=style))  # a style given to print would also paint what is live

    def _draw(self) -> Group:
        from rich.console import Group
        from rich.text import Text

        width = max(self._console.width - 4, 20)
        lines = [Text(f"  | {_clean(line.text)[:width]}", style="dim") for line in tuple(self._tail)]
        planned = sum(1 for step in tuple(self._planned.values()) if step.line)
        rest = [Text(f"  {planned} more", style="dim")] if planned else []
        return Group(self._table(), *lines, *rest)

    def _table(self) -> Table:
        from rich.table import Table

        table = Table.grid(padding=(0, 1), expand=False)
        mark, style = MARKS[StepState.RUNNING]
        now = time.monotonic()
        for step, began in tuple(self._running.values())[:SHOWN_STEPS]:
            seconds = f"{now - began:.0f}s"
            table.add_row(mark, _clean(step.title), seconds, _transferred(self._transfers.get(step.id)), style=style)
        return table


def _worth_showing(step: Step) -> bool:
    return step.line is not None or step.state is StepState.FAILED or (step.seconds or 0) >= WORTH_SHOWING_S


def _cost(step: Step) -> str:
    took = f"{step.seconds:.1f}s" if step.seconds and step.state is not StepState.CACHED else ""
    size = _size(step.bytes) if step.bytes else ""
    return "".join(f"  {part}" for part in (took, size) if part)


def _transferred(progress: Progress | None) -> str:
    if progress is None or not progress.current_bytes:
        return ""
    total = f" of {_size(progress.total_bytes)}" if progress.total_bytes else ""
    return f"{_size(progress.current_bytes)}{total}"


def _size(size_bytes: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size_bytes < 1000:
            return f"{size_bytes:.0f} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:.1f} GB"


def _advice(warning: BuildWarning) -> str:
    return " ".join(part for part in (warning.text, warning.url) if part)


def _id(step: Step | None) -> str | None:
    return step.id if step else None


def _clean(text: str) -> str:
    """Drop what would move the cursor or repaint the terminal."""
    return _CONTROL.sub("", text)
