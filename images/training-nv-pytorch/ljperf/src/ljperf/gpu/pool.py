"""Several trials at one time, as far as their memory fits beside each other; a measurement of speed runs alone."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from ljperf.ablation.runs import end
from ljperf.gpu.clock import Share
from ljperf.gpu.trials import Ended, Trial, ended

CONTEXT_BYTES = 2 * 1024**3  # a process's CUDA context, its libraries, and cuBLAS's workspace
FRAGMENTATION = 1.15  # of what is allocated: what the allocator holds beyond it
POLL_S = 0.1


@dataclass(slots=True)
class Running:
    """A trial's process."""

    trial: Trial
    child: subprocess.Popen[bytes]
    log: IO[bytes]
    since: float
    result: Path

    def over(self) -> Ended:
        """What it left; the process has ended."""
        self.log.close()
        return ended(self.trial, self.child.returncode, self.result, Path(self.log.name), time.monotonic() - self.since)


@dataclass(slots=True)
class Pool:
    """Where trials run."""

    folder: Path
    program: tuple[str, ...]
    capacity_bytes: int | None = None
    """The device's memory; None: nothing to share, one at a time."""
    at_once: int = 1
    expected_s: float = 30.0
    """How long a trial takes, until the first one has shown it."""
    say: Callable[[str], None] = lambda _: None
    _running: list[Running] = field(default_factory=list)

    def run(self, trials: Sequence[Trial], share: Share) -> tuple[Ended, ...]:
        """All of them, in their order as far as memory lets; those without time left are said to be left out."""
        waiting = list(trials)
        done: list[Ended] = []
        try:
            while waiting or self._running:
                self._begin(waiting, share)
                done += self._reap(share)
                if waiting and not self._running and not share.fits(self.expected_s):
                    done += [Ended(trial, None, "left out: no time left", 0.0) for trial in waiting]
                    break
                time.sleep(POLL_S)
        finally:
            for running in self._running:
                end(running.child)
                running.log.close()
            self._running.clear()
        return tuple(done)

    def _begin(self, waiting: list[Trial], share: Share) -> None:
        while waiting and share.fits(self.expected_s) and self._room_for(waiting[0]):
            trial = waiting.pop(0)
            log = (self.folder / f"{trial.name}.log").open("wb")
            result = self.folder / f"{trial.name}.json"
            child = subprocess.Popen(
                trial.command(self.program, result),
                env={**os.environ, "LJPERF_HOOKS": "", "CHECKPOINT_OPTIMIZATION": "", "LJ_COMPILE": ""},
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                process_group=0,
            )
            self._running.append(Running(trial, child, log, time.monotonic(), result))

    def _room_for(self, trial: Trial) -> bool:
        if not self._running:
            return True
        trials = [running.trial for running in self._running] + [trial]
        if len(trials) > self.at_once or self.capacity_bytes is None:
            return False
        # A recommendation asks how much memory is free: others would change its answer.
        if any(one.recommended or one.predicted_bytes is None for one in trials):
            return False
        return sum(footprint(one) for one in trials) <= self.capacity_bytes

    def _reap(self, share: Share) -> list[Ended]:
        over: list[Ended] = []
        for running in tuple(self._running):
            late = running.child.poll() is None
            if late and share.left_s > 0:
                continue
            if late:
                end(running.child)
            found = running.over()
            if late and found.result is None:
                found = replace(found, failure="left out: ended, no time left")
            self._running.remove(running)
            self.expected_s = max(min(self.expected_s, 600.0), found.wall_s) if found.result else self.expected_s
            self.say(line_of(found))
            over.append(found)
        return over


def footprint(trial: Trial) -> float:
    """Bytes of the device that a trial takes, by prediction."""
    return (trial.predicted_bytes or 0) * FRAGMENTATION + CONTEXT_BYTES


def line_of(found: Ended) -> str:
    """One line for who watches."""
    what = found.failure or f"{found.speed or 0:,.0f} tokens/s"
    if found.allocated:
        what += f", peak {found.allocated / 1e9:.2f} GB"
    return f"{found.trial.name}: {what} ({found.wall_s:.0f} s)"
