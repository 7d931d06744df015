"""Partial results: what was measured so far is on disk at any time, so that nobody's end can take it along."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from ljperf.benchmark.result import text_of
from ljperf.report.files import ReportNotWrittenError, write_whole

INTERVAL_S = 0.5


class Saver:
    """Writes the newest result from a thread: also while the loop waits for a rank that is gone."""

    def __init__(self, path: Path | None, interval_s: float = INTERVAL_S) -> None:
        self._path = path
        self._interval_s = interval_s
        self._pending: Callable[[], dict[str, Any]] | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ljperf-saver", daemon=True)

    def __enter__(self) -> Saver:
        if self._path:
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._ended.set()
        if self._path:
            self._thread.join()

    def offer(self, result: Callable[[], dict[str, Any]]) -> None:
        """Let this be the newest; it is made and written when there is time, in the thread."""
        self._pending = result

    def _run(self) -> None:
        while not self._ended.wait(self._interval_s):
            self._write()

    def _write(self) -> None:
        pending, self._pending = self._pending, None
        if pending and self._path:
            # The final result says what is wrong with the file system; a partial one must not end a run.
            with contextlib.suppress(ReportNotWrittenError):
                write_whole(self._path, text_of(pending()))


@contextlib.contextmanager
def nothing_on_stdout() -> Iterator[None]:
    """Frameworks, and the compilers that they start, print to stdout; ours holds the result alone: theirs to stderr."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
