"""Expected failures: what happened, where, and what to do. Each class carries the exit code of the command."""

from __future__ import annotations


class LjperfError(Exception):
    """An expected failure, shown without a traceback.

    `message` says what happened, `hint` what to do, `location` where (a file, a JSON pointer, a rank).
    """

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None, location: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.location = location


class UsageError(LjperfError):
    """What was asked for cannot be, whatever the machine."""

    exit_code = 2


class UnknownModelError(UsageError):
    """No model of that name."""


class PartialResultError(LjperfError):
    """A part was measured, and kept; the rest failed."""

    exit_code = 3
