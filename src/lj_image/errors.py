"""Every failure a user can meet, each with its exit code.

LjImageError                 1
├── UsageError               2   a wrong argument or option
├── ManifestError            2   image.yaml, a release or the config says something impossible
├── LockError                2   the lock is missing, stale or edited by hand
├── ResolutionError          1   no set of distributions satisfies the release
├── ArtifactError            1   a file could not be fetched, or is not the file that was locked
├── EngineError              1   the engine is absent, refuses us or went away
├── BuildError               1   a step of the build failed
├── VerificationError        1   the image is not what was promised
├── PublishError             1   nothing, or not everything, was published
│   └── PartlyPublishedError 3   some endpoints have it, others do not
└── Interrupted              130
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a file that a person can open."""

    file: str
    line: int | None = None
    """Counted from 1."""
    column: int | None = None
    """Counted from 1."""

    def __str__(self) -> str:
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)


class LjImageError(Exception):
    """An expected failure: what happened, where, and what to do about it."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str | None = None, location: Location | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.location = location

    def lines(self) -> tuple[str, ...]:
        """Return the lines to show: message, place, way out; what is unknown is left out."""
        where = (f"  at {self.location}",) if self.location else ()
        way_out = tuple(f"  {line}" for line in self.hint.splitlines()) if self.hint else ()
        return (self.message, *where, *way_out)


class UsageError(LjImageError):
    """A wrong argument or option."""

    exit_code = 2


class ManifestError(LjImageError):
    """A file that a person edits says something impossible; may carry several findings."""

    exit_code = 2

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        location: Location | None = None,
        others: Iterable[ManifestError] = (),
    ) -> None:
        super().__init__(message, hint=hint, location=location)
        self.others = tuple(others)

    def lines(self) -> tuple[str, ...]:
        """Return this finding's lines, then those of the others."""
        own = super().lines()
        return (*own, *(line for other in self.others for line in other.lines()))


class LockError(LjImageError):
    """The lock is missing, stale or edited by hand."""

    exit_code = 2


class ResolutionError(LjImageError):
    """No set of distributions satisfies the release."""


class ArtifactError(LjImageError):
    """A file could not be fetched, or is not the file that was locked."""


class EngineError(LjImageError):
    """The engine is absent, refuses us or went away."""


class BuildError(LjImageError):
    """A step of the build failed."""


class VerificationError(LjImageError):
    """The image is not what was promised."""


class PublishError(LjImageError):
    """Nothing was published, or it cannot be proven."""


class PartlyPublishedError(PublishError):
    """Some endpoints hold the image, others do not."""

    exit_code = 3


class Interrupted(LjImageError):
    """The user pressed Ctrl-C."""

    exit_code = 130
