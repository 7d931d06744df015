"""What a probe is: questions for the agent, and what its answers say about a component."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from packaging.version import InvalidVersion, Version

from lj_image.catalog.release import Component
from lj_image.catalog.versions import keeps_promise
from lj_image.verify.agent import Answer, Question


@dataclass(frozen=True, slots=True)
class Context:
    """What a probe may know besides the component."""

    environment: Mapping[str, str]
    """The image's own environment variables."""
    archive: Path | None = None
    """The component's archive on this machine."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one component."""

    expected: str
    found: str | None
    kept: bool
    message: str = ""
    probed: bool = True
    """False when nobody could be asked; neither kept nor broken."""


def not_probed(expected: str, reason: str) -> Finding:
    """Return the finding about a component that nobody can ask."""
    return Finding(expected, None, kept=False, message=reason, probed=False)


def compared(expected: str, found: str, keeps: Callable[[str, str], bool], message: str = "") -> Finding:
    """Return the finding that two versions give."""
    return Finding(expected, found, keeps(expected, found), message)


def keeps_or_refines(promised: str, found: str) -> bool:
    """Compare with a finder that may say more than was promised: CUDA_VERSION is 12.8.0.038 in an image of 12.8.0."""
    return keeps_promise(promised, found) or found.startswith(f"{promised}.")


def same_version(expected: str, found: str) -> bool:
    """Say whether two versions are equal by PEP 440, where both are such versions; else as text."""
    try:
        return Version(expected) == Version(found)
    except InvalidVersion:
        return expected == found


@dataclass(frozen=True, slots=True)
class Probe:
    """One way to find a component's version."""

    ask: Callable[[Component, Context], Mapping[str, Question]]
    """The questions; their names are the probe's own."""
    read: Callable[[Component, Context, Mapping[str, Answer]], Finding]
    """What the answers, under the same names, say."""


@dataclass(frozen=True, slots=True)
class Single:
    """The usual probe: one question, whose value is, or can be turned into, the version."""

    question: Question
    version: Callable[[object], str] = str
    keeps: Callable[[str, str], bool] = keeps_promise
    where: Callable[[object], str] = field(default=lambda value: "")

    def probe(self) -> Probe:
        """Return the probe that asks this question."""
        return Probe(lambda component, context: {"version": self.question}, self._read)

    def _read(self, component: Component, context: Context, answers: Mapping[str, Answer]) -> Finding:
        answer = answers["version"]
        if answer.error is not None:
            return Finding(component.version, None, kept=False, message=answer.error)
        return compared(component.version, self.version(answer.value), self.keeps, self.where(answer.value))
