"""From a step to the command that runs it: in this environment, or in a container of the step's image."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ljperf.ablation.runs import start
from ljperf.ablation.steps import Machine, Step
from ljperf.errors import UsageError

COMM_LIBRARY: Final = "/usr/local/accl/lib"  # where the image puts ACCL-N
BORROWED: Final = ("ljperf", "click", "yaml")  # all that measuring needs beyond the image's own PyTorch
INSIDE: Final = "/opt/ljperf-borrowed"
RESULTS_INSIDE: Final = "/ljperf-results"

# The ablation's own: what it measures, and where a run's result goes.
RESERVED: Final = ("--model", "--json", "--html", "--recompute", "--compile", "--compare")


@dataclass(frozen=True, slots=True)
class Measurement:
    """What every run has in common. As a call it runs one step: the `Runner` that `collect` wants."""

    model: str
    options: tuple[str, ...] = ()
    """Of `ljperf benchmark`, for all steps."""
    program: tuple[str, ...] = (sys.executable, "-m", "ljperf")
    engine_options: tuple[str, ...] = ()
    """Of `docker run`, for steps that are an image."""
    timeout_s: float = 1800

    def __call__(self, step: Step, result: Path, log: Path) -> int:
        """Run it; the exit code."""
        environment = {**os.environ, **dict(step.environment)}
        if step.image is None:
            return start(self.here(step, result), environment, log, self.timeout_s)
        name = f"ljperf-{uuid.uuid4().hex[:12]}"
        try:
            return start(self.contained(step, result, name), dict(os.environ), log, self.timeout_s)
        finally:
            # `docker run` may die before its container; where it is gone already, that is an error nobody needs.
            subprocess.run(["docker", "rm", "--force", name], capture_output=True, check=False)

    def here(self, step: Step, result: Path) -> list[str]:
        """The command in this environment."""
        return [*self.program, *self._benchmark(step, str(result))]

    def contained(self, step: Step, result: Path, name: str) -> list[str]:
        """The command through `docker run`: our own source is lent to the image, so that all measure alike."""
        assert step.image is not None
        mounts = [f"{folder}:{INSIDE}/{folder.name}:ro" for folder in map(_folder_of, BORROWED)]
        mounts.append(f"{result.parent.resolve()}:{RESULTS_INSIDE}")
        variables = {**dict(step.environment), "PYTHONPATH": INSIDE}
        return [
            *("docker", "run", "--rm", "--name", name, "--ipc=host", "--network=host"),
            *(("--gpus", "all") if Path("/dev/nvidiactl").exists() else ()),
            *(word for mount in mounts for word in ("--volume", mount)),
            *(word for key, value in variables.items() for word in ("--env", f"{key}={value}")),
            *self.engine_options,
            *("--entrypoint", "python3", step.image, "-m", "ljperf"),
            *self._benchmark(step, f"{RESULTS_INSIDE}/{result.name}"),
        ]

    def _benchmark(self, step: Step, result: str) -> list[str]:
        return ["benchmark", "--model", self.model, *self.options, *step.options, "--json", result]


def check_options(options: Sequence[str]) -> None:
    """Refuse options of the benchmark that the ablation sets itself. Raises UsageError."""
    taken = [option for option in options if option.split("=")[0] in RESERVED]
    if taken:
        raise UsageError(f"{taken[0].split('=')[0]} is set by the ablation itself", hint="leave it out after --")


def look_around(environment: Mapping[str, str] = os.environ) -> Machine:
    """What this machine has: does docker answer, is the image's communication library there?"""
    library = COMM_LIBRARY if Path(COMM_LIBRARY).is_dir() else None
    return Machine(engine_answers(), library, environment.get("LD_LIBRARY_PATH", ""))


def engine_answers() -> bool:
    """Does `docker` reach an engine?"""
    try:
        asked = subprocess.run(["docker", "version"], capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == 0


def _folder_of(package: str) -> Path:
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise UsageError(f"{package} has no folder that could be lent to an image", hint="install it with pip")
    return Path(found.origin).parent
