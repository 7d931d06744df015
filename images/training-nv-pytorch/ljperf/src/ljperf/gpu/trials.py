"""Trials: one `ljperf benchmark` each, and what became of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ljperf.ablation.runs import reason_of

RESULT_KEYS = ("complete", "tokens_per_second", "memory", "setup")


@dataclass(frozen=True, slots=True)
class Trial:
    """One training to run."""

    name: str
    model: str
    """FRAMEWORK/MODEL."""
    options: tuple[str, ...] = ()
    recommended: bool = False
    """The planner chose the number of layers: it must fit."""
    predicted_bytes: int | None = None
    """Peak of allocated memory, before the run."""

    def command(self, program: tuple[str, ...], result: Path) -> list[str]:
        """What runs it."""
        return [*program, "benchmark", "--model", self.model, *self.options, "--json", str(result)]


@dataclass(frozen=True, slots=True)
class Ended:
    """What a trial left."""

    trial: Trial
    result: Mapping[str, Any] | None
    failure: str | None
    wall_s: float

    @property
    def speed(self) -> float | None:
        """Tokens per second in all."""
        return None if self.result is None else float(self.result["tokens_per_second"])

    @property
    def allocated(self) -> int | None:
        """Peak bytes that PyTorch gave out; None on a CPU."""
        return None if self.result is None else self.result["memory"].get("allocated")

    @property
    def retries(self) -> int:
        """How often the allocator had to give everything back and ask again: then it did not fit."""
        return 0 if self.result is None else int(self.result["memory"].get("retries") or 0)


def ended(trial: Trial, code: int, result: Path, log: Path, wall_s: float) -> Ended:
    """Read what a process left behind."""
    document = _read(result) if code == 0 else None
    return Ended(trial, document, None if document else reason_of(code, log), wall_s)


def _read(result: Path) -> Mapping[str, Any] | None:
    try:
        document = json.loads(result.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    whole = isinstance(document, dict) and all(document.get(key) for key in RESULT_KEYS)
    return document if whole else None


def this_program() -> tuple[str, ...]:
    """`ljperf`, by the Python that runs this."""
    return (sys.executable, "-m", "ljperf")
