"""What is kept of the steps between runs: one JSON document per release × variant, beside its record.

A document that cannot be read is no state at all: nothing of it is believed, and every step looks again. It only ever
saves work; what is true of an image stands in its record, and at the registries.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, get_args

from lj_image import __version__
from lj_image.release.pipeline.step import Kept, StepName, StepState
from lj_image.whole import write_whole

FORMAT: Final = 1


class States:
    """The state of one release × variant, as a file."""

    def __init__(self, records: Path, key: str, say: Callable[[str], None]) -> None:
        self.path = records / "runs" / f"{key}.json"  # records themselves are the files one folder above
        self.files = records / "runs" / key
        """What steps have written, so that a run in a clean checkout has it, too."""
        self._say = say
        self._steps: dict[StepName, Kept] | None = None

    def of(self, name: StepName) -> Kept | None:
        """Return what is kept of a step."""
        return self._known().get(name)

    def keep(self, name: StepName, kept: Kept) -> None:
        """Keep what came of a step; the document appears by rename."""
        self._known()[name] = kept
        steps = {step: asdict(item) for step, item in self._known().items()}
        text = json.dumps({"format": FORMAT, "tool": __version__, "steps": steps}, indent=2) + "\n"
        write_whole(self.path, text, alone=True)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Within this block no other run works on the same release; waits for one that does."""
        from filelock import FileLock, Timeout

        self.path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.path.with_name(f".{self.path.stem}.lock"))
        try:
            lock.acquire(timeout=0)
        except Timeout:
            self._say(f"another release run of {self.path.stem} is going on; waiting for it")
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

    def _known(self) -> dict[StepName, Kept]:
        if self._steps is None:
            self._steps = self._read()
        return self._steps

    def _read(self) -> dict[StepName, Kept]:
        try:
            return _from_json(json.loads(self.path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return {}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self._say(f"{self.path} cannot be believed ({error}): every step looks again")
            return {}


def _from_json(values: dict[str, Any]) -> dict[StepName, Kept]:
    if values["format"] != FORMAT:
        raise ValueError("written by another version of lj-image")
    return {name: _kept(name, item) for name, item in values["steps"].items()}


def _kept(name: str, values: dict[str, Any]) -> Kept:
    kept = Kept(**values)
    texts = (kept.inputs, kept.outcome, kept.what, kept.at, *kept.files, *kept.files.values())
    if name not in get_args(StepName) or kept.outcome not in get_args(StepState):
        raise ValueError(f"{name} {kept.outcome}: no step and outcome of ours")
    if not all(isinstance(text, str) for text in texts):
        raise TypeError(f"{name}: not text")
    return kept
