"""Runs all checks side by side; one that fails or hangs is a finding itself and stops no other."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from lj_image.doctor.finding import Finding, problem
from lj_image.errors import LjImageError

DEADLINE_S: Final = 20.0
"""For all checks together; each has shorter time limits of its own where it can."""
Check = Callable[[], Iterable[Finding]]


def examine(checks: Mapping[str, Check], deadline_s: float = DEADLINE_S) -> tuple[Finding, ...]:
    """Run checks and return their findings in the order of the checks."""
    answers: queue.SimpleQueue[tuple[str, tuple[Finding, ...]]] = queue.SimpleQueue()
    for name, check in checks.items():
        # Daemons, since a thread that waits for a dead engine cannot be ended, and the process must.
        threading.Thread(target=_run, args=(name, check, answers.put), name=f"doctor-{name}", daemon=True).start()
    found: dict[str, tuple[Finding, ...]] = {}
    until = time.monotonic() + deadline_s
    while len(found) < len(checks):
        try:
            name, findings = answers.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            break
        found[name] = findings
    silent = f"no answer in {deadline_s:.0f} s"
    return tuple(finding for name in checks for finding in found.get(name, (problem(name, silent),)))


def _run(name: str, check: Check, report: Callable[[tuple[str, tuple[Finding, ...]]], None]) -> None:
    try:
        findings = tuple(check())
    except LjImageError as error:
        where = f" (at {error.location})" if error.location else ""
        findings = (problem(name, error.message + where, error.hint),)
    except Exception as error:  # a check that breaks must not hide what the others found
        findings = (problem(name, f"the check itself failed: {type(error).__name__}: {error}"),)
    report((name, findings))
