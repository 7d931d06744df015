"""Timing of whole commands, in turn, and the ratio of their medians."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Run:
    """One finished process."""

    seconds: float
    peak_mib: float


@dataclass(frozen=True)
class Figure:
    """A ratio, and what it was made from."""

    name: str
    ratio: float
    sides: dict[str, float]
    """Median seconds (or MiB) of each side."""
    mark: float | None = None
    """The ratio that we hold ourselves to; at most this."""
    note: str = ""
    runs: dict[str, list[float]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the figure for machines."""
        return asdict(self)


def run(command: Sequence[str], environment: Mapping[str, str] | None = None, cwd: str | None = None) -> Run:
    """Run a command to its end; raises RuntimeError with its last words when it fails."""
    started = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **(environment or {})}, cwd=cwd
    )
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - started
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}: {output.decode(errors='replace')[-800:]}")
    return Run(seconds, usage.ru_maxrss / 1024)


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
    sides = {side: statistics.median(values) for side, values in times.items()}
    return Figure(name, sides["ours"] / sides["peer"], sides, mark, note, times)
