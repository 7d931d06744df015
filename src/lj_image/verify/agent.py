"""Asks the agent inside a container: many questions, one round trip."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, Protocol

from lj_image.errors import VerificationError
from lj_image.verify.frames import Output

Question = Mapping[str, Any]
"""`op` and its arguments, as in `inside.OPERATIONS`."""
TIMEOUT_S: Final = 900.0
"""For all questions together: hashing the protected packages of a cold image of many gigabytes takes minutes."""


class Shell(Protocol):
    """Where commands run."""

    def run(self, command: str, *, stdin: str | None, timeout_s: float) -> Output: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Answer:
    """What the agent says to one question: a value, or why there is none."""

    value: Any = None
    error: str | None = None


def ask(shell: Shell, questions: Mapping[str, Question], *, timeout_s: float = TIMEOUT_S) -> dict[str, Answer]:
    """Put all questions at once; raises VerificationError when no Python inside can answer."""
    if not questions:
        return {}
    output = shell.run(
        f"cd / && exec python3 -c {shlex.quote(_source())}", stdin=_encoded(questions), timeout_s=timeout_s
    )
    if output.exit_code == 127:
        raise VerificationError("there is no python3 in the image", hint="verification asks its questions through it")
    try:
        answers = json.loads(output.stdout)
    except ValueError:
        said = output.stderr.decode(errors="replace").strip().splitlines()
        raise VerificationError(
            f"python3 in the image does not work: {said[-1] if said else f'exit code {output.exit_code}'}",
            hint="try: docker run --rm --entrypoint python3 IMAGE -c 'import json, ctypes, importlib.metadata'",
        ) from None
    return {key: Answer(answer.get("value"), answer.get("error")) for key, answer in answers.items()}


def _encoded(questions: Mapping[str, Question]) -> str:
    return json.dumps({key: dict(question) for key, question in questions.items()})


@cache
def _source() -> str:
    return files("lj_image.verify").joinpath("inside.py").read_text(encoding="utf-8")
