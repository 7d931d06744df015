"""Turns what an engine says about a failed build into an error that names layer, line and way out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from lj_image.builders.docker.events import Step
from lj_image.builders.docker.steps import DockerfileSteps, Instruction
from lj_image.errors import BuildError, EngineError, LjImageError, Location

DOCKERFILE: Final = "Dockerfile"

_EXIT_CODE = re.compile(r"(?:exit code: |returned a non-zero code: )(\d+)")
_LINE = re.compile(r"[Dd]ockerfile parse error (?:on )?line (\d+): *")
# engines wrap a message in the names of their own parts
_WRAPPING = re.compile(
    r"^(?:failed to solve(?: with frontend [\w.]+)?|failed to create LLB definition|failed to build LLB"
    r"|rpc error: code = \w+ desc =|executor failed running \[[^\]]*\]):? "
)

# moby/buildkit session/manager.go; grpc-go says it in its own words once a session is known but gone
_SESSION_LOST = re.compile(r"no active session|only one connection allowed|could not access local files without")

HINTS: Final = {
    re.compile(r"no space left on device"): "the engine's disk is full: docker system df shows what takes the space",
    re.compile(r"exit code: 137"): "the step was killed, most likely because memory ran out",
    re.compile(r"network bridge not found|could not find bridge"): "this engine has no bridge: "
    "build with network none or host",
    re.compile(r"401 Unauthorized|authorization failed|failed to authorize"): "log in to the registry: docker login",
}


class StepFailed(BuildError):
    """An instruction of the Dockerfile failed."""

    def __init__(
        self,
        message: str,
        *,
        step: Step | None = None,
        exit_code_of_step: int | None = None,
        log: Sequence[str] = (),
        hint: str | None = None,
        location: Location | None = None,
    ) -> None:
        super().__init__(message, hint=hint, location=location)
        self.step = step
        self.exit_code_of_step = exit_code_of_step
        """What the step's command returned, where the engine says so."""
        self.log = tuple(log)
        """The last lines that the step has written, secrets masked."""

    def lines(self) -> tuple[str, ...]:
        """Return message and place, the step's last lines, and the way out."""
        message, *rest = super().lines()
        return (message, *(f"  | {line}" for line in self.log), *rest)


def build_failure(
    message: str, dockerfile: DockerfileSteps, step: Step | None, log: Sequence[str] = ()
) -> LjImageError:
    """Return the error for what the engine said; `message` and `log` hold no secrets any more."""
    if _SESSION_LOST.search(message):
        return EngineError(
            "the engine lost the session that serves it the build context",
            hint="run the build again; if that does not help, build with --builder docker-classic",
        )
    exit_code = _number(_EXIT_CODE, message)
    line = _number(_LINE, message) or (step.line if step else None)
    instruction = dockerfile.at_line(line) if line else None
    reason = f"exit code {exit_code}" if exit_code is not None else _plain(message)
    return StepFailed(
        f"{_subject(instruction)}: {reason}",
        step=step,
        exit_code_of_step=exit_code,
        log=log,
        hint=next((hint for pattern, hint in HINTS.items() if pattern.search("\n".join((message, *log)))), None),
        location=Location(DOCKERFILE, line) if line else None,
    )


def _subject(instruction: Instruction | None) -> str:
    if instruction is None:
        return "the build failed"
    if instruction.layer is None:
        return f"{instruction.keyword} failed"
    named = (component for component in instruction.components if component != instruction.layer)
    components = ", ".join(named)
    return f"layer {instruction.layer} failed" + (f" ({components})" if components else "")


def _plain(message: str) -> str:
    message = message.strip()
    while (shorter := _WRAPPING.sub("", message)) != message:
        message = shorter
    return _LINE.sub("", message)


def _number(pattern: re.Pattern[str], message: str) -> int | None:
    match = pattern.search(message)
    return int(match[1]) if match else None
