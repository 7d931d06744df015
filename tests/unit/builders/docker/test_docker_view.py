from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from lj_image.builders.docker.events import BuildWarning, LogLine, Observer, Progress, Step, StepState
from lj_image.builders.docker.view import JsonView, LiveView, PlainView, view


def step(state: StepState, **fields: object) -> Step:
    return Step("d", "[2/2] RUN install", state, **{"line": 4, "layer": "numpy", **fields})  # type: ignore[arg-type]


def play(observer: Observer) -> None:
    internal = Step("i", "[internal] load build context", StepState.DONE, seconds=0.1)
    observer.step_changed(internal)
    observer.step_changed(step(StepState.PLANNED))
    running = step(StepState.RUNNING)
    observer.step_changed(running)
    observer.progress(Progress(running, "layer", 1_500_000, 3_000_000))
    observer.log_line(LogLine(running, "\x1b[31mhello\x1b[0m [bold]x", "stdout"))
    observer.warning(BuildWarning(running, "beware", "https://docs.example"))
    observer.step_changed(step(StepState.DONE, seconds=12.34, bytes=2_000_000))
    observer.step_changed(step(StepState.DONE, seconds=12.34, bytes=2_000_000))


def test_plain_lines_are_one_per_change_and_carry_the_layer() -> None:
    stream = io.StringIO()
    play(PlainView(stream))
    assert stream.getvalue().splitlines() == [
        "running  numpy",
        "numpy | hello [bold]x",
        "warning  beware https://docs.example",
        "done     numpy  12.3s  2 MB",
    ]


def test_json_is_one_object_per_event() -> None:
    stream = io.StringIO()
    play(JsonView(stream))
    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [event["event"] for event in events] == [
        "step", "step", "step", "progress", "log", "warning", "step", "step",
    ]  # fmt: skip
    assert events[-1] == {
        "event": "step",
        "id": "d",
        "name": "[2/2] RUN install",
        "state": "done",
        "line": 4,
        "layer": "numpy",
        "components": [],
        "seconds": 12.34,
        "bytes": 2000000,
    }


def test_the_live_view_leaves_one_line_per_ended_step() -> None:
    stream = io.StringIO()
    with LiveView(console=Console(file=stream, force_terminal=True, no_color=True, width=100)) as live:
        play(live)
    assert stream.getvalue().count("✓ numpy  12.3s  2 MB") == 1
    assert "! beware" in stream.getvalue()


def test_the_live_view_shows_what_runs_with_its_bytes_and_last_lines() -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=100)
    live = LiveView(console=console)
    live.step_changed(Step("p", "[3/3] RUN x", StepState.PLANNED, line=9))
    running = step(StepState.RUNNING)
    live.step_changed(running)
    live.progress(Progress(running, "layer", 1_500_000, 3_000_000))
    live.log_line(LogLine(running, "\x1b[2Jlast [bold]words", "stdout"))
    with console.capture() as captured:
        console.print(live._draw())
    shown = captured.get()
    assert "numpy 0s 2 MB of 3 MB" in shown
    assert "| last [bold]words" in shown
    assert "\x1b[2J" not in shown
    assert "1 more" in shown


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = Terminal()
    with view(stream) as observer:
        assert isinstance(observer, LiveView)
        play(observer)
    assert "\x1b[32m" not in stream.getvalue()


def test_the_view_suits_the_stream() -> None:
    with view(io.StringIO()) as observer:
        assert isinstance(observer, PlainView)
    with view(io.StringIO(), as_json=True) as observer:
        assert isinstance(observer, JsonView)
