"""How a push tells what it does: bars on a terminal, lines in a log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn

LayerState = Literal["waiting", "sending", "sent", "there", "retrying"]


@dataclass(frozen=True, slots=True)
class LayerPush:
    """How far one layer is."""

    id: str
    state: LayerState
    """`there` is a layer that the registry had before."""
    current_bytes: int = 0
    total_bytes: int | None = None
    """Uncompressed, as the engine counts; None while it does not say."""


class PushProgress(Protocol):
    """Watches pushes, one after another."""

    def begin(self, sent_to: str) -> None:
        """See a push start."""

    def layer(self, layer: LayerPush) -> None:
        """See a layer in a new state, or further on."""

    def end(self) -> None:
        """See the push end, well or not."""


class NoProgress:
    """Shows nothing."""

    def begin(self, sent_to: str) -> None:
        """Do nothing."""

    def layer(self, layer: LayerPush) -> None:
        """Do nothing."""

    def end(self) -> None:
        """Do nothing."""


class PlainProgress:
    """A line per push and per layer that changes its state: for CI logs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._states: dict[str, LayerState] = {}

    def begin(self, sent_to: str) -> None:
        """Name the place."""
        self._states = {}
        print(f"pushing {sent_to}", file=self._stream, flush=True)

    def layer(self, layer: LayerPush) -> None:
        """Write a line if the state is new."""
        if layer.state not in ("waiting", self._states.get(layer.id)):
            print(f"  {layer.id} {layer.state}", file=self._stream, flush=True)
        self._states[layer.id] = layer.state

    def end(self) -> None:
        """Do nothing: the table that follows tells the outcome."""


class RichProgress:
    """A bar per layer, for terminals."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def begin(self, sent_to: str) -> None:
        """Name the place and draw no bar yet."""
        self._console.print(f"pushing {sent_to}", highlight=False, markup=False)
        columns = (TextColumn("  {task.description} {task.fields[state]:<8}"), BarColumn(), DownloadColumn())
        self._bars = Progress(*columns, console=self._console, transient=True)
        self._tasks = {}
        self._bars.start()

    def layer(self, layer: LayerPush) -> None:
        """Move the layer's bar."""
        if self._bars is None:
            return
        if layer.id not in self._tasks:
            self._tasks[layer.id] = self._bars.add_task(layer.id, total=None, state=layer.state)
        done = layer.total_bytes or 1 if layer.state in ("sent", "there") else layer.current_bytes
        total = layer.total_bytes or (1 if layer.state in ("sent", "there") else None)
        self._bars.update(self._tasks[layer.id], completed=done, total=total, state=layer.state)

    def end(self) -> None:
        """Take the bars away."""
        if self._bars is not None:
            self._bars.stop()
            self._bars = None
