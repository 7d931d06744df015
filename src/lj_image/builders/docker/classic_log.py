"""The classic builder's text, turned into steps, log lines and transfers.

Source of the rules: moby builder/dockerfile/builder.go (`Step n/m : …`, ` ---> …`) and pkg/streamformatter, which
paints what a step writes to its standard error.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from lj_image.builders.docker.events import LogStream, Step, StepState
from lj_image.builders.docker.lines import LineReader
from lj_image.builders.docker.recorder import Recorder
from lj_image.builders.docker.steps import DockerfileSteps

STDERR_BEGINS: Final = "\x1b[91m"
STDERR_ENDS: Final = "\x1b[0m"

_STEP = re.compile(r"Step (?P<index>\d+)/(?P<total>\d+) : .*")
_OWN_LINE = re.compile(r" ---> (?:[0-9a-f]{12}|Running in [0-9a-f]{12}|Using cache)")
_OWN_REMARK = re.compile(r"(?: ---> )?Remov(?:ing|ed) intermediate container [0-9a-f]{12}")
_RESULT = re.compile(r"Successfully (?:built|tagged) .*")


class ClassicLog:
    """The state of a classic build, fed with one object of the answer after the other."""

    def __init__(self, dockerfile: DockerfileSteps, recorder: Recorder) -> None:
        self._dockerfile = dockerfile
        self._recorder = recorder
        self._readers: dict[LogStream, LineReader] = {"stdout": LineReader(), "stderr": LineReader()}
        self._began = 0.0
        self.step: Step | None = None
        """The step that is running, or ran last."""

    def feed(self, message: Mapping[str, Any]) -> None:
        """Take one object and report what has changed."""
        if "stream" in message:
            self._text(message["stream"])
        elif self.step and message.get("progressDetail"):
            detail = message["progressDetail"]
            name = f"{message.get('status', '')} {message.get('id', '')}".strip()
            self._recorder.progress(self.step.id, name, detail.get("current", 0), detail.get("total"))

    def end(self, state: StepState) -> None:
        """Report how the last step has ended."""
        for stream, reader in self._readers.items():
            for line in reader.rest():
                self._line(line, stream)
        if self.step and self.step.state is StepState.RUNNING:
            self._change(state)

    def _text(self, text: str) -> None:
        stream: LogStream = "stderr" if text.startswith(STDERR_BEGINS) else "stdout"
        if stream == "stderr":
            text = text.removeprefix(STDERR_BEGINS).removesuffix(STDERR_ENDS)
        for line in self._readers[stream].feed(text.encode()):
            self._line(line, stream)

    def _line(self, line: str, stream: LogStream) -> None:
        if match := _STEP.fullmatch(line):
            self._begin(line, int(match["index"]), int(match["total"]))
        elif line == " ---> Using cache":
            self._change(StepState.CACHED)
        elif self.step and line and not any(own.fullmatch(line) for own in (_OWN_LINE, _OWN_REMARK, _RESULT)):
            self._recorder.log(self.step.id, line, stream)

    def _begin(self, name: str, index: int, total: int) -> None:
        if self.step is None:
            self._plan(total)
        elif self.step.state is StepState.RUNNING:
            self._change(StepState.DONE)
        self._began = time.monotonic()
        self.step = self._new(name, index, StepState.RUNNING)
        self._recorder.step(self.step)

    def _plan(self, total: int) -> None:
        for index, instruction in enumerate(self._dockerfile.instructions[:total], start=1):
            name = f"Step {index}/{total} : {instruction.text}"
            self._recorder.step(self._new(name, index, StepState.PLANNED))

    def _new(self, name: str, index: int, state: StepState) -> Step:
        instruction = self._dockerfile.of_classic(name)
        if instruction is None:  # the engine adds one for labels
            return Step(id=f"step-{index}", name=name, state=state)
        line, layer, components = instruction.line, instruction.layer, instruction.components
        return Step(id=f"step-{index}", name=name, state=state, line=line, layer=layer, components=components)

    def _change(self, state: StepState) -> None:
        if self.step:
            self.step = replace(self.step, state=state, seconds=round(time.monotonic() - self._began, 3))
            self._recorder.step(self.step)
