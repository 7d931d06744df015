from __future__ import annotations

import pytest

from lj_image.builders.docker.cancellation import Cancellation
from lj_image.errors import Interrupted


def test_cancelling_stops_what_runs() -> None:
    cancellation, stopped = Cancellation(), []
    with cancellation.stops_by(lambda: stopped.append("stop")):
        cancellation.cancel()
    assert stopped == ["stop"]
    with pytest.raises(Interrupted):
        cancellation.check()


def test_cancelled_before_it_starts_it_does_not_start() -> None:
    cancellation = Cancellation()
    cancellation.cancel()
    with pytest.raises(Interrupted), cancellation.stops_by(lambda: None):
        pytest.fail("it has started")


def test_cancelling_after_the_end_calls_nobody() -> None:
    cancellation, stopped = Cancellation(), []
    with cancellation.stops_by(lambda: stopped.append("stop")):
        pass
    cancellation.cancel()
    assert stopped == []
