"""Stands between a builder and its observer: masks secrets, reports a step once per change, keeps the last lines."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from lj_image.builders.docker.events import BuildWarning, LogLine, LogStream, Observer, Progress, Step

TAIL_LINES: Final = 20
"""How many lines of a failed step are shown with the error."""


class Recorder:
    """Reports a build's events to `observer`, with every text passed through `redact`."""

    def __init__(self, observer: Observer, redact: Callable[[str], str]) -> None:
        self._observer = observer
        self._redact = redact
        self._steps: dict[str, Step] = {}
        self._tails: defaultdict[str, deque[str]] = defaultdict(lambda: deque(maxlen=TAIL_LINES))

    def step(self, step: Step) -> None:
        """Report a step, unless it is as it was."""
        step = replace(step, name=self._redact(step.name))
        if self._steps.get(step.id) != step:
            self._steps[step.id] = step
            self._observer.step_changed(step)

    def log(self, step_id: str, text: str, stream: LogStream) -> None:
        """Report one line that a step has written."""
        text = self._redact(text)
        self._tails[step_id].append(text)
        self._observer.log_line(LogLine(self._steps.get(step_id), text, stream))

    def progress(self, step_id: str, name: str, current_bytes: int, total_bytes: int | None) -> None:
        """Report how far a transfer of a known step is."""
        if step := self._steps.get(step_id):
            self._observer.progress(Progress(step, self._redact(name), current_bytes, total_bytes))

    def warning(self, step_id: str, text: str, url: str | None) -> None:
        """Report advice from the engine."""
        self._observer.warning(BuildWarning(self._steps.get(step_id), self._redact(text), url))

    def tail(self, step_id: str) -> tuple[str, ...]:
        """Return the last lines that a step has written, secrets masked."""
        return tuple(self._tails[step_id])
