"""Steps, one after the other: what still holds is skipped, and the first failure ends the run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Protocol

from lj_image.errors import Interrupted, LjImageError
from lj_image.release.pipeline.step import Done, Kept, Step, StepName, StepReport

Say = Callable[[str], None]


class Memory(Protocol):
    """Keeps outcomes from one run to the next."""

    def of(self, name: StepName) -> Kept | None:
        """Return what is kept of a step."""

    def keep(self, name: StepName, kept: Kept) -> None:
        """Keep what came of a step."""


class NoMemory:
    """For steps that are taken anew in every run."""

    def of(self, name: StepName) -> Kept | None:
        """Know nothing."""
        return None

    def keep(self, name: StepName, kept: Kept) -> None:
        """Keep nothing."""


def follow(steps: Iterable[Step], memory: Memory, say: Say, told: Callable[[StepReport], None]) -> bool:
    """Take the steps in order and tell of each; return whether all of them were taken.

    An expected failure, and Ctrl-C, is in the report of its step. Anything else is told of, too, then raised on.
    """
    for step in steps:
        report = _taken(step, memory, say, told)
        told(report)
        if report.state == "failed":
            return False
    return True


def _taken(step: Step, memory: Memory, say: Say, told: Callable[[StepReport], None]) -> StepReport:
    started = time.monotonic()
    say(f"{step.name}: {step.begins}")
    inputs = ""

    def failed(error: LjImageError, words: str) -> StepReport:
        report = StepReport(step.name, "failed", words, time.monotonic() - started, error)
        say(f"{step.name}: failed, {words.partition(chr(10))[0]}")
        memory.keep(step.name, _kept(inputs, report))
        return report

    try:
        inputs = step.inputs()
        done = _held(step, memory.of(step.name), inputs) or step.act()
    except LjImageError as error:
        return failed(error, error.message)
    except KeyboardInterrupt:
        return failed(
            Interrupted(f"interrupted during {step.name}", hint="run it again: it goes on here"), "interrupted"
        )
    except Exception as error:  # a full disk, or a fault of ours: told of, for a summary without it would mislead
        words = f"{type(error).__name__}: {error}"
        told(failed(LjImageError(words), words))
        raise
    report = StepReport(step.name, done.state, done.what, time.monotonic() - started, done.error)
    if done.state in ("done", "partly"):
        memory.keep(step.name, _kept(inputs, report, done))
    say(f"{step.name}: {done.state}{f', {done.what}' if done.what else ''}")
    return report


def _held(step: Step, kept: Kept | None, inputs: str) -> Done | None:
    """Return what holds of an earlier outcome; one that failed, or came from other inputs, says nothing."""
    if kept is None or kept.outcome != "done" or kept.inputs != inputs:
        return None
    return step.still(kept)


def _kept(inputs: str, report: StepReport, done: Done | None = None) -> Kept:
    at = datetime.now(UTC).isoformat(timespec="seconds")
    files = dict(done.files) if done else {}
    return Kept(inputs, report.state, report.what, at, round(report.seconds, 1), files)
