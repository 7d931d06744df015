"""Timing of whole commands and of calls, in turn, and the ratio of their medians."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


class Skipped(Exception):
    """A side that cannot be had here, and why."""


@dataclass(frozen=True)
class Run:
    """One finished process."""

    seconds: float
    peak_mib: float
    """Of the process, or of the largest of those that it has waited for."""
    output: str = ""


@dataclass(frozen=True)
class Figure:
    """A ratio, and what it was made from."""

    name: str
    ratio: float
    sides: dict[str, float]
    """Median seconds (or MiB, or bytes) of each side."""
    mark: float | None = None
    """The ratio that we hold ourselves to."""
    note: str = ""
    runs: dict[str, list[float]] = field(default_factory=dict)
    at_least: bool = False
    """Whether the mark is the least, as for `30 times faster`; else it is the most."""

    @property
    def is_met(self) -> bool:
        """Whether the ratio is on the right side of its mark."""
        return self.mark is None or (self.ratio >= self.mark if self.at_least else self.ratio <= self.mark)

    def to_json(self) -> dict[str, Any]:
        """Return the figure for machines."""
        return asdict(self)


def ours_by(name: str, side: str, times: Mapping[str, list[float]], mark: float | None, note: str) -> Figure:
    """Return by what part of a side's time we are done: 1 is as fast, less is faster."""
    return _of_medians(name, "ours", side, times, mark, note, at_least=False)


def times_faster(name: str, side: str, times: Mapping[str, list[float]], mark: float | None, note: str) -> Figure:
    """Return how many times as long as we a side takes."""
    return _of_medians(name, side, "ours", times, mark, note, at_least=True)


def _of_medians(
    name: str,
    above: str,
    below: str,
    times: Mapping[str, list[float]],
    mark: float | None,
    note: str,
    *,
    at_least: bool,
) -> Figure:
    runs = {side: times[side] for side in sorted((above, below), key=lambda side: side != "ours")}
    sides = {side: statistics.median(values) for side, values in runs.items()}
    return Figure(name, sides[above] / sides[below], sides, mark, note, runs, at_least)


def run(command: Sequence[str], environment: Mapping[str, str] | None = None, cwd: str | None = None) -> Run:
    """Run a command to its end; raises RuntimeError with its last words when it fails."""
    started = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **(environment or {})}, cwd=cwd
    )
    assert process.stdout is not None
    output = process.stdout.read().decode(errors="replace")
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - started
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}: {output[-800:]}")
    return Run(seconds, usage.ru_maxrss / 1024, output)


def timed(call: Callable[[], object]) -> float:
    """Return the seconds that a call takes."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def in_turn(sides: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Run all sides once a round; each begins when what those before it wrote is on the disk."""
    times: dict[str, list[float]] = {side: [] for side in sides}
    for _ in range(rounds):
        for side, seconds_of in sides.items():
            os.sync()
            times[side].append(seconds_of())
    return times


def against(
    name: str, ours: Sequence[str], peer: Sequence[str], *, runs: int, mark: float, note: str = "", warm_up: int = 1
) -> Figure:
    """Time two commands in turn; the ratio is ours by the peer's, of the medians."""
    times: dict[str, list[float]] = {"ours": [], "peer": []}
    for number in range(warm_up + runs):
        for side, command in (("ours", ours), ("peer", peer)):
            seconds = run(command).seconds
            if number >= warm_up:
                times[side].append(seconds)
    return ours_by(name, "peer", times, mark, note)
