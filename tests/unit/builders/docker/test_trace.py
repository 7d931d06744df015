from __future__ import annotations

from typing import Any

from observer import Seen

from lj_image.builders.docker.recorder import Recorder
from lj_image.builders.docker.session.messages import StatusResponse
from lj_image.builders.docker.steps import DockerfileSteps
from lj_image.builders.docker.trace import Trace

DOCKERFILE = "FROM base\n# layer: numpy\n# component: transformers\nRUN install\n"


class Story:
    """A trace, told message by message."""

    def __init__(self) -> None:
        self.seen = Seen()
        self.trace = Trace(DockerfileSteps(DOCKERFILE), Recorder(self.seen, lambda text: text.replace("hush", "***")))

    def vertex(self, digest: str, name: str, started: float = 0, completed: float = 0, **fields: Any) -> None:
        status = StatusResponse()
        vertex = status.vertexes.add(digest=digest, name=name, **fields)
        for field, time in (("started", started), ("completed", completed)):
            if time:
                getattr(vertex, field).seconds = int(time)
                getattr(vertex, field).nanos = round(time % 1 * 1e9)
        self.trace.feed(status.SerializeToString())

    def log(self, digest: str, message: bytes, stream: int = 1) -> None:
        status = StatusResponse()
        status.logs.add(vertex=digest, msg=message, stream=stream)
        self.trace.feed(status.SerializeToString())

    def transfer(self, digest: str, name: str, current: int, total: int = 0) -> None:
        status = StatusResponse()
        status.statuses.add(vertex=digest, id=name, current=current, total=total)
        self.trace.feed(status.SerializeToString())


def test_a_step_goes_from_planned_to_done_and_takes_its_time() -> None:
    story = Story()
    story.vertex("d", "[2/2] RUN install")
    story.vertex("d", "[2/2] RUN install", 10.25)
    story.vertex("d", "[2/2] RUN install", 10.25, 12.5)
    assert story.seen.states("numpy") == ["planned", "running", "done"]
    step = story.seen.steps[-1]
    assert (step.line, step.layer, step.components, step.seconds) == (4, "numpy", ("transformers",), 2.25)


def test_a_step_that_is_completed_and_started_again_is_running() -> None:
    story = Story()
    story.vertex("d", "[2/2] RUN install", 1, 2)
    story.vertex("d", "[2/2] RUN install", 3)
    assert story.seen.states("numpy") == ["done", "running"]
    assert story.seen.steps[-1].seconds is None


def test_a_cached_step_is_cached_and_said_once() -> None:
    story = Story()
    story.vertex("d", "[2/2] RUN install", 1, 1, cached=True)
    story.vertex("d", "[2/2] RUN install", 1, 1, cached=True)
    assert story.seen.states("numpy") == ["cached"]


def test_a_log_cut_within_a_character_is_whole_again() -> None:
    story = Story()
    story.vertex("d", "[2/2] RUN install", 1)
    text = "größe 中文 🐳\n".encode()
    for byte in text:
        story.log("d", bytes([byte]))
    assert story.seen.texts() == ["größe 中文 🐳"]
    assert story.seen.lines[0].step == story.seen.steps[0]


def test_streams_are_decoded_apart() -> None:
    story = Story()
    story.log("d", "ä".encode()[:1], 1)
    story.log("d", b"err\n", 2)
    story.log("d", "ä".encode()[1:] + b"\n", 1)
    assert [(line.text, line.stream) for line in story.seen.lines] == [("err", "stderr"), ("ä", "stdout")]


def test_lines_end_with_a_carriage_return_too_and_the_last_one_with_its_step() -> None:
    story = Story()
    story.vertex("d", "[2/2] RUN install", 1)
    story.log("d", b"10%\r20%\r\nno end")
    assert story.seen.texts() == ["10%", "20%"]
    story.vertex("d", "[2/2] RUN install", 1, 2)
    assert story.seen.texts() == ["10%", "20%", "no end"]
    story.log("x", b"stray")
    story.trace.flush()
    assert story.seen.texts()[-1] == "stray"


def test_a_line_without_end_does_not_grow_forever() -> None:
    story = Story()
    for _ in range(100):
        story.log("d", b"x" * 1024)
    assert len(story.seen.lines) == 1


def test_secrets_are_masked_in_names_and_lines() -> None:
    story = Story()
    story.vertex("d", "[2/2] RUN login hush", 1)
    story.log("d", b"hush\n")
    assert story.seen.steps[0].name == "[2/2] RUN login ***"
    assert story.seen.texts() == ["***"]


def test_transfers_are_told_apart_by_step_and_id_and_add_up() -> None:
    story = Story()
    story.vertex("d", "[1/2] FROM base", 1)
    story.transfer("d", "sha256:a", 10, 100)
    story.transfer("d", "sha256:a", 90, 100)
    story.transfer("d", "sha256:b", 5)
    story.transfer("unknown", "sha256:a", 1)
    assert [(t.name, t.current_bytes, t.total_bytes) for t in story.seen.transfers] == [
        ("sha256:a", 10, 100),
        ("sha256:a", 90, 100),
        ("sha256:b", 5, None),
    ]
    story.vertex("d", "[1/2] FROM base", 1, 2)
    assert story.seen.steps[-1].bytes == 95


def test_what_a_step_transferred_and_said_last_may_come_in_the_message_that_ends_it() -> None:
    story = Story()
    story.vertex("d", "[internal] load build context", 1)
    story.transfer("d", "transferring context:", 26)
    status = StatusResponse()
    vertex = status.vertexes.add(digest="d", name="[internal] load build context")
    vertex.started.seconds, vertex.completed.seconds = 1, 2
    status.statuses.add(vertex="d", id="transferring context:", current=4_194_330)
    status.logs.add(vertex="d", msg=b"the last words", stream=1)
    story.trace.feed(status.SerializeToString())

    assert story.seen.steps[-1].bytes == 4_194_330
    assert story.seen.texts() == ["the last words"]


def test_steps_are_listed_as_they_started_not_as_they_were_announced() -> None:
    story = Story()
    story.vertex("3", "[2/2] RUN install", 30)
    story.vertex("9", "exporting to image")
    story.vertex("1", "[internal] load build definition", 10, 11)
    story.vertex("2", "[1/2] FROM base", 20, 21)
    assert [step.id for step in story.trace.steps()] == ["1", "2", "3", "9"]


def test_the_failed_step_is_the_one_whose_words_the_engine_repeats() -> None:
    story = Story()
    story.vertex("a", "[internal] load build context", 1, 2, error="context canceled")
    story.vertex("b", "[2/2] RUN install", 1, 2, error='process "/bin/sh" did not complete: exit code: 7')
    failed = story.trace.failed_step('failed to solve: process "/bin/sh" did not complete: exit code: 7')
    assert failed is not None
    assert (failed.id, failed.state) == ("b", "failed")
    assert story.trace.failed_step("something else") is None


def test_warnings_keep_their_address() -> None:
    story = Story()
    status = StatusResponse()
    status.warnings.add(vertex="d", short=b"use hush", url="https://docs.example/rule")
    story.trace.feed(status.SerializeToString())
    (warning,) = story.seen.warnings
    assert (warning.text, warning.url) == ("use ***", "https://docs.example/rule")
