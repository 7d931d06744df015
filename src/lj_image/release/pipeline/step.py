"""A step of a run, what came of it, and what is kept of that for the next run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from lj_image.errors import LjImageError

StepName = Literal["lint", "lock", "build", "verify", "push", "notes"]
StepState = Literal["done", "skipped", "planned", "partly", "failed"]
"""`skipped`: it was done before, and that still holds; `planned`: a dry run says what it would do."""


@dataclass(frozen=True, slots=True)
class Done:
    """What came of a step that did not fail."""

    what: str
    """A few words for people."""
    state: StepState = "done"
    files: Mapping[str, str] = field(default_factory=dict)
    """Name of a file that it wrote -> SHA-256 of its content, in hex."""
    error: LjImageError | None = None
    """What is missing, of a step that is done in part."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What an earlier run left of a step."""

    inputs: str
    outcome: StepState
    what: str
    at: str
    """UTC, ISO 8601."""
    seconds: float
    files: Mapping[str, str] = field(default_factory=dict)


def _never(kept: Kept) -> Done | None:
    """Believe no earlier outcome."""
    return None


@dataclass(frozen=True, slots=True)
class Step:
    """One step: what it is made from, how it is done, and whether an earlier outcome still holds."""

    name: StepName
    begins: str
    """What it does, for the line that it begins with."""
    inputs: Callable[[], str]
    """Gives the digest of everything that its outcome follows from; raises LjImageError as `act` does."""
    act: Callable[[], Done]
    """Does it; raises LjImageError when that fails."""
    still: Callable[[Kept], Done | None] = _never
    """Asked when the inputs are those of an outcome that is kept: returns what holds of it, or None to do it again."""


@dataclass(frozen=True, slots=True)
class StepReport:
    """What a run tells of a step."""

    name: StepName
    state: StepState
    what: str
    seconds: float
    error: LjImageError | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the report for machines."""
        shown: dict[str, Any] = {
            "name": self.name,
            "state": self.state,
            "seconds": round(self.seconds, 3),
            "what": self.what,
        }
        return shown | ({"error": error_to_json(self.error)} if self.error else {})


def error_to_json(error: LjImageError) -> dict[str, Any]:
    """Return an error for machines."""
    return {
        "message": error.message,
        "hint": error.hint,
        "at": str(error.location) if error.location else None,
        "exit_code": error.exit_code,
    }
