"""Runs: one process per step and round, each with a file of its own, so that an interruption loses at most one run."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ljperf.ablation.steps import Step
from ljperf.errors import UsageError
from ljperf.report.files import write_whole

GRACE_S = 15  # an interrupted benchmark ends its ranks and saves what it has
LONGEST_REASON = 300  # characters
NOISE = ("destroy_process_group", "docker run --help")  # said after the error, and not about it
FAILURES_IN_A_ROW = 2  # a step that failed twice without success between would fail again


class Runner(Protocol):
    """Start one run; give its exit code."""

    def __call__(self, step: Step, result: Path, log: Path) -> int:
        """Run `ljperf benchmark` for the step, with `--json result`, its output in `log`."""


@dataclass(frozen=True, slots=True)
class Run:
    """What one process left behind: a result, or what went wrong."""

    step: str
    round: int
    result: dict[str, Any] | None
    failure: str | None = None

    @property
    def speed(self) -> float | None:
        """Tokens per second in all; None for a failed run."""
        return None if self.result is None else float(self.result["tokens_per_second"])


def order_of(steps: Sequence[Step], repeats: int) -> tuple[tuple[int, Step], ...]:
    """Round robin, each round starting one step later: no step is always first (cold) or always last (hot)."""
    count = len(steps)
    return tuple((turn, steps[(turn + index) % count]) for turn in range(repeats) for index in range(count))


def collect(
    steps: Sequence[Step], repeats: int, folder: Path, run: Runner, progress: Callable[[str], None] = lambda _: None
) -> tuple[Run, ...]:
    """Run what is not in the folder yet; a step that keeps failing is given up, the others go on."""
    runs: list[Run] = []
    failures = dict.fromkeys((step.name for step in steps), 0)
    for turn, step in order_of(steps, repeats):
        if failures[step.name] >= FAILURES_IN_A_ROW:
            runs.append(Run(step.name, turn, None, f"not tried: it had failed {FAILURES_IN_A_ROW} times in a row"))
            continue
        known = read(folder, step, turn)
        ended = known or _one(step, turn, folder, run)
        failures[step.name] = 0 if ended.failure is None else failures[step.name] + 1
        runs.append(ended)
        progress(_line(ended, repeats, kept=known is not None))
    return tuple(runs)


def read(folder: Path, step: Step, turn: int) -> Run | None:
    """A run that ended well earlier; None if there is none, or only a partial or unreadable one."""
    try:
        document = json.loads(_result(folder, step, turn).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(document, dict) or not document.get("complete") or not document.get("tokens_per_second"):
        return None
    return Run(step.name, turn, document)


def _one(step: Step, turn: int, folder: Path, run: Runner) -> Run:
    log = folder / f"{step.name}-{turn + 1}.log"
    code = run(step, _result(folder, step, turn), log)
    ended = read(folder, step, turn) if code == 0 else None
    if ended:
        return ended
    return Run(step.name, turn, None, reason_of(code, log))


def reason_of(code: int, log: Path) -> str:
    """Why a run failed: out of memory before all else, then the last line that it said."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    lines = [re.sub(r"^\[rank\d+\]:", "", line).strip() for line in text.splitlines()]
    memory = [line for line in lines if "out of memory" in line.lower()]
    telling = [line for line in lines if line and not any(noise in line for noise in NOISE)]
    said = telling[-1] if telling else "it said nothing"
    ended = f"ended by signal {-code}" if code < 0 else f"exit code {code}" if code else "no complete result"
    return f"{ended}: {(memory[-1] if memory else said)[:LONGEST_REASON]} (all of it: {log.name})"


def _result(folder: Path, step: Step, turn: int) -> Path:
    return folder / f"{step.name}-{turn + 1}.json"


def _line(run: Run, repeats: int, kept: bool) -> str:
    what = f"{run.speed:.1f} tokens/s" if run.speed is not None else f"failed: {run.failure}"
    return f"round {run.round + 1} of {repeats}, {run.step}: {what}{' (kept from before)' if kept else ''}"


def claim(folder: Path, settings: dict[str, Any], fresh: bool) -> None:
    """Make the folder this ablation's; what other settings measured there is never mixed in.

    Raises UsageError if it holds runs of other settings and `fresh` is not given.
    """
    note = folder / "settings.json"
    text = json.dumps(settings, indent=2, sort_keys=True) + "\n"
    if fresh:
        for old in (*folder.glob("*-*.json"), *folder.glob("*-*.log")):
            old.unlink()
    elif note.is_file() and note.read_text(encoding="utf-8") != text:
        changed = _changed(json.loads(note.read_text(encoding="utf-8")), settings)
        hint = "give --fresh to measure anew, or another --folder"
        raise UsageError(f"it holds runs with other settings ({changed})", hint=hint, location=str(folder))
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(note, text)


def _changed(old: dict[str, Any], new: dict[str, Any]) -> str:
    return ", ".join(key for key in sorted({*old, *new}) if old.get(key) != json.loads(json.dumps(new.get(key))))


def start(command: Sequence[str], environment: dict[str, str], log: Path, timeout_s: float) -> int:
    """Run one command in a process group of its own; after the time, or on an interruption, the whole group ends."""
    with log.open("w", encoding="utf-8") as out:
        child = subprocess.Popen(
            command, env=environment, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, process_group=0
        )
        try:
            return child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            end(child)
            out.write(f"\nended after {timeout_s:.0f} s, its time\n")
            return 124
        except BaseException:
            end(child)
            raise


def end(child: subprocess.Popen[bytes]) -> None:
    """Ask the group to end, then make it."""
    _signal(child, signal.SIGINT)
    deadline = time.monotonic() + GRACE_S
    while child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    _signal(child, signal.SIGKILL)
    child.wait()


def _signal(child: subprocess.Popen[bytes], number: int) -> None:
    try:
        os.killpg(child.pid, number)
    except ProcessLookupError:
        return
