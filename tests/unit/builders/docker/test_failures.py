"""Messages as engines 20.10, 26 and 28 have sent them."""

from __future__ import annotations

import pytest

from lj_image.builders.docker.events import Step, StepState
from lj_image.builders.docker.failures import StepFailed, build_failure
from lj_image.builders.docker.steps import DockerfileSteps
from lj_image.errors import BuildError, EngineError

DOCKERFILE = DockerfileSteps("FROM base\n# layer: numpy\n# component: transformers, numpy\nRUN install\nCOPY x /\n")
STEP = Step("d", "[2/3] RUN install", StepState.FAILED, line=4, layer="numpy", components=("transformers", "numpy"))


@pytest.mark.parametrize(
    "message",
    [
        "executor failed running [/bin/sh -c install]: exit code: 7",
        'failed to solve: process "/bin/sh -c install" did not complete successfully: exit code: 7',
        "The command '/bin/sh -c install' returned a non-zero code: 7",
    ],
)
def test_a_failed_command_names_layer_components_line_code_and_last_words(message: str) -> None:
    error = build_failure(message, DOCKERFILE, STEP, ["one", "two"])
    assert isinstance(error, StepFailed)
    assert isinstance(error, BuildError)
    assert error.exit_code_of_step == 7
    assert error.log == ("one", "two")
    assert error.lines() == (
        "layer numpy failed (transformers): exit code 7",
        "  | one",
        "  | two",
        "  at Dockerfile:4",
    )


@pytest.mark.parametrize(
    ("message", "lines"),
    [
        (
            "failed to solve with frontend dockerfile.v0: failed to create LLB definition: "
            "dockerfile parse error line 4: unknown instruction: RUNN",
            ("layer numpy failed (transformers): unknown instruction: RUNN", "  at Dockerfile:4"),
        ),
        (
            "dockerfile parse error on line 5: unknown instruction: COPYY",
            ("COPY failed: unknown instruction: COPYY", "  at Dockerfile:5"),
        ),
        (
            "failed to solve: target stage no could not be found",
            ("the build failed: target stage no could not be found",),
        ),
        (
            "failed to solve with frontend dockerfile.v0: failed to build LLB: failed to compute cache key: "
            '"/nope" not found: not found',
            ('the build failed: failed to compute cache key: "/nope" not found: not found',),
        ),
    ],
)
def test_other_failures_lose_their_wrapping(message: str, lines: tuple[str, ...]) -> None:
    assert build_failure(message, DOCKERFILE, None).lines() == lines


@pytest.mark.parametrize(
    "message",
    [
        "no active session for abc: context deadline exceeded",
        "Unavailable: connection error: desc = only one connection allowed",
        "could not access local files without session",
    ],
)
def test_a_lost_session_is_the_engines_matter(message: str) -> None:
    error = build_failure(message, DOCKERFILE, None)
    assert isinstance(error, EngineError)
    assert error.hint


@pytest.mark.parametrize(
    ("message", "log", "hint"),
    [
        ("process did not complete successfully: exit code: 1", ["OSError: no space left on device"], "disk is full"),
        ("process did not complete successfully: exit code: 137", [], "memory ran out"),
        ("network bridge not found", [], "network none"),
        ("failed to authorize: 401 Unauthorized", [], "docker login"),
    ],
)
def test_known_causes_come_with_a_way_out(message: str, log: list[str], hint: str) -> None:
    error = build_failure(message, DOCKERFILE, STEP, log)
    assert error.hint is not None
    assert hint in error.hint
