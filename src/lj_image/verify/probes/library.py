"""Probes that ask a native library for its version; no GPU is needed for that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lj_image.catalog.release import ArchiveSource, BaseSource, Component, PipSource
from lj_image.catalog.versions import keeps_promise
from lj_image.verify.agent import Answer, Question
from lj_image.verify.probes.probe import Context, Finding, Probe, compared


@dataclass(frozen=True, slots=True)
class Library:
    """A library that knows its version."""

    stem: str
    """Its name without `lib` and `.so`."""
    function: str
    outputs: int
    """How many `int*` the function fills; 0 when it returns the number itself."""
    sonames: tuple[str, ...]
    """Names by which a loader finds it, newest first."""
    decode: Callable[[list[int]], str]

    def probe(self) -> Probe:
        """Return the probe that calls the function."""
        return Probe(self._ask, self._read)

    def _ask(self, component: Component, context: Context) -> Mapping[str, Question]:
        question: dict[str, Any] = {
            "op": "library",
            "stem": self.stem,
            "function": self.function,
            "outputs": self.outputs,
            "sonames": self._names_for(component.version),
        }
        match component.source:
            case PipSource(distributions=distributions):
                return {"here": {**question, "distributions": [name for name, _ in distributions]}}
            case ArchiveSource(path=path, library_path=library_path):
                here: dict[str, Question] = {"here": {**question, "below": path}}
                # An archive may be complete and yet lose to the base's own library, which programs then load.
                return here | {"loaded": question} if library_path is not None else here
            case BaseSource() | _:
                return {"here": question}

    def _names_for(self, promised: str) -> list[str]:
        """Return the names with that of the promised major version first: a base may have two side by side."""
        major = promised.partition(".")[0]
        return sorted(self.sonames, key=lambda name: name.split(".so.")[1].partition(".")[0] != major)

    def _read(self, component: Component, context: Context, answers: Mapping[str, Answer]) -> Finding:
        here, loaded = answers["here"], answers.get("loaded")
        if here.error is not None:
            return Finding(component.version, None, kept=False, message=here.error)
        finding = compared(component.version, self._version(here), keeps_promise, f"{here.value['path']}")
        if loaded is None or not finding.kept:
            return finding
        if loaded.error is not None:
            return Finding(component.version, None, kept=False, message=f"programs cannot load it: {loaded.error}")
        if loaded.value["path"] != here.value["path"] and loaded.value["values"] != here.value["values"]:
            message = f"programs load {loaded.value['path']} instead of {here.value['path']}"
            return Finding(component.version, self._version(loaded), kept=False, message=message)
        return finding

    def _version(self, answer: Answer) -> str:
        return self.decode([int(value) for value in answer.value["values"]])


def parts(number: int, *, major: int, minor: int) -> str:
    """Return major.minor.patch of a number that holds them as decimal digits."""
    return f"{number // major}.{number % major // minor}.{number % minor}"
