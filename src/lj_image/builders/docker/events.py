"""What happens during a build, as values that both builders report to an observer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol

LogStream = Literal["stdout", "stderr"]


class StepState(StrEnum):
    """How far a step has come."""

    PLANNED = "planned"
    RUNNING = "running"
    DONE = "done"
    CACHED = "cached"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the engine's work, as it stands now."""

    id: str
    """Stays the same as the step's state changes."""
    name: str
    """The engine's name for it, such as `[2/5] RUN make`."""
    state: StepState
    line: int | None = None
    """Where its instruction begins in the Dockerfile, counted from 1; None for the engine's own steps."""
    layer: str | None = None
    """The title of the layer that the step makes."""
    components: tuple[str, ...] = ()
    """The components in that layer."""
    seconds: float | None = None
    """How long it took, once it has ended."""
    bytes: int | None = None
    """How much it has transferred, where the engine says so."""

    @property
    def title(self) -> str:
        """What to call it: the layer, else the engine's name."""
        return self.layer or self.name


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line that a step has written."""

    step: Step | None
    text: str
    stream: LogStream


@dataclass(frozen=True, slots=True)
class Progress:
    """How far one of a step's transfers is, such as one layer of a pull."""

    step: Step
    name: str
    current_bytes: int
    total_bytes: int | None
    """None when the engine does not know."""


@dataclass(frozen=True, slots=True)
class BuildWarning:
    """Advice from the engine about the Dockerfile."""

    step: Step | None
    text: str
    url: str | None = None


class Observer(Protocol):
    """Watches a build; every method is called from the thread that builds."""

    def step_changed(self, step: Step) -> None:
        """See a step in a new state."""

    def log_line(self, line: LogLine) -> None:
        """See a line that a step has written."""

    def progress(self, progress: Progress) -> None:
        """See how far a transfer is."""

    def warning(self, warning: BuildWarning) -> None:
        """See advice from the engine."""
