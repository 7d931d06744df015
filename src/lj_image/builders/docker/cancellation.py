"""A way to stop a build from another thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lj_image.errors import Interrupted


class Cancellation:
    """Given to a build by whoever may want to stop it."""

    def __init__(self) -> None:
        self._requested = threading.Event()
        self._stop: Callable[[], None] | None = None
        self._lock = threading.RLock()  # a signal may come to the thread that holds it

    @property
    def requested(self) -> bool:
        """Whether `cancel` has been called."""
        return self._requested.is_set()

    def cancel(self) -> None:
        """Stop the build, which then raises Interrupted; before it starts or after it has ended, too."""
        with self._lock:
            self._requested.set()
            if self._stop:
                self._stop()

    def check(self) -> None:
        """Raise Interrupted if the build is to stop."""
        if self.requested:
            raise Interrupted("the build was stopped")

    @contextmanager
    def stops_by(self, stop: Callable[[], None]) -> Iterator[None]:
        """Within this block, `cancel` calls `stop`, which must return soon and bear being called late."""
        with self._lock:
            self._stop = stop
        try:
            self.check()
            yield
        finally:
            self._stop = None
