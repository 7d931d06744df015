"""An observer that remembers what it has seen."""

from __future__ import annotations

from lj_image.builders.docker.events import BuildWarning, LogLine, Progress, Step


class Seen:
    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.lines: list[LogLine] = []
        self.transfers: list[Progress] = []
        self.warnings: list[BuildWarning] = []

    def step_changed(self, step: Step) -> None:
        self.steps.append(step)

    def log_line(self, line: LogLine) -> None:
        self.lines.append(line)

    def progress(self, progress: Progress) -> None:
        self.transfers.append(progress)

    def warning(self, warning: BuildWarning) -> None:
        self.warnings.append(warning)

    def texts(self) -> list[str]:
        return [line.text for line in self.lines]

    def states(self, title: str) -> list[str]:
        return [str(step.state) for step in self.steps if step.title == title]
