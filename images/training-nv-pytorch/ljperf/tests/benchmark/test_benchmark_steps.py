from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from ljperf.benchmark.steps import Meter, NotFiniteLossError, percentile, summary


def clock(*times: float) -> Iterator[float]:
    yield from times


def train(meter: Meter, losses: list[float]) -> None:
    for loss in losses:
        meter.begin()
        meter.end(loss)


def test_warm_up_is_not_timed_and_its_losses_are_kept() -> None:
    ticking = clock(0, 10, 10, 11, 20, 23)
    meter = Meter(warmup=1, steps=2, clock=lambda: next(ticking))
    train(meter, [5.0, 4.0, 3.0])
    assert meter.seconds == [1, 3]  # the 9 s between the second and the third step belong to none
    assert meter.losses == [5.0, 4.0, 3.0]
    assert meter.measured


def test_the_device_is_synchronised_before_each_reading_of_the_clock() -> None:
    events: list[str] = []
    meter = Meter(0, 1, lambda: events.append("sync"), lambda: float(events.append("clock") or 0))
    train(meter, [1.0])
    assert events == ["sync", "clock", "sync", "clock"]


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_loss_that_is_no_number_stops_and_names_the_step(loss: float) -> None:
    meter = Meter(warmup=1, steps=5)
    with pytest.raises(NotFiniteLossError, match=rf"the loss is {loss} at step 3 \(measured\)"):
        train(meter, [1.0, 1.0, loss, 1.0])
    assert meter.done == 3
    assert len(meter.seconds) == 2


class Recorded:
    def __init__(self, meter: list[Meter]) -> None:
        self.meter, self.at = meter, [-1, -1]

    def start(self) -> None:
        self.at[0] = self.meter[0].done

    def stop(self) -> None:
        self.at[1] = self.meter[0].done


def test_a_trace_is_of_two_more_steps_that_are_not_measured() -> None:
    meters: list[Meter] = []
    tracer = Recorded(meters)
    meter = Meter(warmup=1, steps=3, tracer=tracer)
    meters.append(meter)
    train(meter, [1.0] * meter.total)
    assert meter.total == 6
    assert tracer.at == [4, 6]
    assert len(meter.seconds) == 3


def test_a_percentile_is_a_measured_value() -> None:
    assert percentile([3.0, 1.0, 2.0], 50) == 2.0
    assert percentile(list(range(1, 101)), 95) == 95
    assert percentile([7.0], 95) == 7.0


def test_a_summary_without_steps_is_empty() -> None:
    assert summary([]) == {"median": None, "p95": None, "mean": None, "min": None, "max": None, "all": []}


def test_a_summary_of_steps() -> None:
    found = summary([1.0, 2.0, 6.0, 3.0])
    assert found == {"median": 2.5, "p95": 6.0, "mean": 3.0, "min": 1.0, "max": 6.0, "all": [1.0, 2.0, 6.0, 3.0]}
