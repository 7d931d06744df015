"""What the tests of builds share besides fixtures."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import docker

from lj_image.builders.docker.events import BuildWarning, LogLine, Progress, Step


class Seen:
    """Remembers all events; `wait_for` a line of the log."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.lines: list[LogLine] = []
        self._changed = threading.Condition()

    def step_changed(self, step: Step) -> None:
        self.steps.append(step)

    def log_line(self, line: LogLine) -> None:
        with self._changed:
            self.lines.append(line)
            self._changed.notify_all()

    def progress(self, progress: Progress) -> None:
        pass

    def warning(self, warning: BuildWarning) -> None:
        pass

    def texts(self) -> list[str]:
        return [line.text for line in self.lines]

    def last(self, layer: str) -> Step:
        return [step for step in self.steps if step.layer == layer][-1]

    def wait_for(self, text: str, timeout_s: float = 20) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: text in self.texts(), timeout_s)


def processes(argument: str) -> list[int]:
    """Return the processes of this machine, also those in containers, that have `argument` on their command line."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if argument.encode() in command and int(folder.name) != os.getpid():
            found.append(int(folder.name))
    return found


def eventually(happens: Callable[[], bool], timeout_s: float = 5) -> bool:
    until = time.monotonic() + timeout_s
    while not happens():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def import_base(api: docker.APIClient, rootfs: Path, repository: str) -> str:
    """Make an image of a root file system and return its reference."""
    api.import_image_from_file(str(rootfs), repository=repository, tag="1")
    return f"{repository}:1"
