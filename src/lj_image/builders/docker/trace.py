"""BuildKit's progress messages, turned into steps, log lines and transfers.

Source of the rules: moby/buildkit api/services/control/control.proto and what engines 20.10 to 28 really send.
A vertex is replaced, never merged: engine 28 completes one after a cache probe and then starts it again.
"""

from __future__ import annotations

from typing import Any, Final

from lj_image.builders.docker.events import LogStream, Step, StepState
from lj_image.builders.docker.lines import LineReader
from lj_image.builders.docker.recorder import Recorder
from lj_image.builders.docker.session.messages import StatusResponse
from lj_image.builders.docker.steps import DockerfileSteps, Instruction

STREAMS: Final[dict[int, LogStream]] = {1: "stdout", 2: "stderr"}


class Trace:
    """The state of a BuildKit build, fed with one message after the other."""

    def __init__(self, dockerfile: DockerfileSteps, recorder: Recorder) -> None:
        self._dockerfile = dockerfile
        self._recorder = recorder
        self._vertexes: dict[str, Any] = {}
        self._instructions: dict[str, Instruction | None] = {}
        self._transferred: dict[tuple[str, str], int] = {}
        self._logs: dict[tuple[str, int], LineReader] = {}

    def feed(self, message: bytes) -> None:
        """Take one StatusResponse and report what has changed.

        A busy engine gathers: one message may hold a step's end together with its last transfer and its last words.
        """
        status = StatusResponse.FromString(message)
        for transfer in status.statuses:
            self._transferred[transfer.vertex, transfer.id] = transfer.current
        for vertex in status.vertexes:
            self._replace(vertex)
        for transfer in status.statuses:
            name = transfer.name or transfer.id
            self._recorder.progress(transfer.vertex, name, transfer.current, transfer.total or None)
        for log in status.logs:
            self._log(log)
        for vertex in status.vertexes:
            self._flush_ended(vertex)
        for warning in status.warnings:
            text = warning.short.decode("utf-8", "replace")
            self._recorder.warning(warning.vertex, text, warning.url or None)

    def flush(self) -> None:
        """Report lines that have no end, once nothing more comes."""
        for digest, stream in tuple(self._logs):
            self._flush(digest, stream)

    def steps(self) -> tuple[Step, ...]:
        """Return all steps in the order in which they started; those that have not come last."""
        started = sorted(self._vertexes.values(), key=lambda vertex: _time(vertex, "started") or float("inf"))
        return tuple(self._step(vertex) for vertex in started)

    def failed_step(self, message: str) -> Step | None:
        """Return the step behind the build's final error; other steps fail too, because they were cancelled."""
        errors = [vertex for vertex in self._vertexes.values() if vertex.error]
        guilty = [vertex for vertex in errors if vertex.error in message]
        return self._step(guilty[0]) if guilty else None

    def _replace(self, vertex: Any) -> None:
        if vertex.digest not in self._instructions:
            self._instructions[vertex.digest] = self._dockerfile.of_buildkit(vertex.name)
        self._vertexes[vertex.digest] = vertex
        self._flush_ended(vertex)
        self._recorder.step(self._step(vertex))

    def _step(self, vertex: Any) -> Step:
        instruction = self._instructions[vertex.digest]
        return Step(
            id=vertex.digest,
            name=vertex.name,
            state=_state(vertex),
            line=instruction.line if instruction else None,
            layer=instruction.layer if instruction else None,
            components=instruction.components if instruction else (),
            seconds=_seconds(vertex),
            bytes=self._bytes(vertex.digest),
        )

    def _bytes(self, digest: str) -> int | None:
        return sum(size for (owner, _), size in self._transferred.items() if owner == digest) or None

    def _log(self, log: Any) -> None:
        reader = self._logs.setdefault((log.vertex, log.stream), LineReader())
        for line in reader.feed(log.msg):
            self._recorder.log(log.vertex, line, STREAMS.get(log.stream, "stdout"))

    def _flush_ended(self, vertex: Any) -> None:
        if vertex.HasField("completed"):
            self._flush(vertex.digest, 1)
            self._flush(vertex.digest, 2)

    def _flush(self, digest: str, stream: int) -> None:
        if reader := self._logs.pop((digest, stream), None):
            for line in reader.rest():
                self._recorder.log(digest, line, STREAMS.get(stream, "stdout"))


def _state(vertex: Any) -> StepState:
    if vertex.error:
        return StepState.FAILED
    if vertex.cached:
        return StepState.CACHED
    if vertex.HasField("completed"):
        return StepState.DONE
    return StepState.RUNNING if vertex.HasField("started") else StepState.PLANNED


def _time(vertex: Any, name: str) -> float | None:
    stamp = getattr(vertex, name)
    return stamp.seconds + stamp.nanos / 1e9 if vertex.HasField(name) else None


def _seconds(vertex: Any) -> float | None:
    started, completed = _time(vertex, "started"), _time(vertex, "completed")
    return round(completed - started, 3) if started is not None and completed is not None else None
