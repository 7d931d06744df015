from __future__ import annotations

import io

from lj_image.lock.progress import Bars, Lines, progress_for


def test_lines_tell_beginning_way_and_end() -> None:
    stream = io.StringIO()
    lines = Lines(stream, interval_s=0)
    lines.start(2 * 1024 * 1024, "fetching 2 files")
    lines.advance(1024 * 1024)
    lines.done()
    first, second, last = stream.getvalue().splitlines()
    assert first == "fetching 2 files (2.0 MiB)"
    assert second == "fetching 2 files: 1.0 of 2.0 MiB"
    assert last.startswith("fetching 2 files: 1.0 MiB in ")


def test_lines_are_few() -> None:
    stream = io.StringIO()
    lines = Lines(stream)
    lines.start(100, "fetching")
    for _ in range(100):
        lines.advance(1)
    assert len(stream.getvalue().splitlines()) == 1


def test_bars_count_and_leave_nothing_behind() -> None:
    from rich.console import Console

    console = Console(file=io.StringIO(), force_terminal=True)
    bars = Bars(console)
    bars.done()
    bars.start(100, "fetching")
    bars.advance(50)
    bars.advance(-10)
    bars.done()
    bars.advance(1)


def test_stream_that_is_no_terminal_gets_lines() -> None:
    assert isinstance(progress_for(io.StringIO()), Lines)
