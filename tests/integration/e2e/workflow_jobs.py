"""Runs the shell lines of our workflows as their services do: one after the other, with their variables and files."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

PYTHON = """\
#!/bin/sh
# Stands for python3: its environments have the lj-image that is tested, and a pip that only says what it is asked for.
[ "$1 $2" = "-m venv" ] || exec env PATH="{path}" python3 "$@"
mkdir -p "$3/bin"
ln -sf "{program}" "$3/bin/lj-image"
printf '#!/bin/sh\\necho pip "$@"\\n' >"$3/bin/pip"
chmod +x "$3/bin/pip"
"""


@dataclass
class Outcome:
    """What came of a job."""

    code: int
    """Of the first step that failed, else 0."""
    said: str
    summary: str = ""
    """What stands on the job's page."""


@dataclass
class Runner:
    """A machine of a service, with a checkout."""

    checkout: Path
    temp: Path
    program: Path
    """The lj-image that an installation gives."""
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shim = self.temp / "shim/python3"
        shim.parent.mkdir(parents=True)
        shim.write_text(PYTHON.format(path=os.environ["PATH"], program=self.program))
        shim.chmod(0o755)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("LJ_IMAGE_", "GITHUB_"))}
        self.env = kept | self.env | {"PATH": f"{shim.parent}:{os.environ['PATH']}"}

    def github(self, job: str, known: Mapping[str, str], **env: str) -> Outcome:
        """Run a job of the GitHub workflow; `known` is what its expressions come to."""
        workflow = yaml.safe_load((self.checkout / ".github/workflows/release.yml").read_text())
        files = {name: self.temp / name for name in ("GITHUB_ENV", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")}
        for path in files.values():
            path.write_text("")
        names = {name: str(path) for name, path in files.items()}
        job_env = self.env | env | names | {"RUNNER_TEMP": str(self.temp / "runner"), "GITHUB_ACTIONS": "true"}
        (self.temp / "runner").mkdir(exist_ok=True)
        outcome = Outcome(0, "")
        for step in workflow["jobs"][job]["steps"]:
            if "run" not in step or (outcome.code and step.get("if") != "always()"):
                continue
            own = {name: _evaluated(str(value), known) for name, value in step.get("env", {}).items()}
            self._bash(step["run"], job_env | own, outcome, "-e")
            job_env |= dict(line.split("=", 1) for line in files["GITHUB_ENV"].read_text().splitlines())
            added = files["GITHUB_PATH"].read_text().splitlines()
            job_env["PATH"] = ":".join([*reversed(added), self.env["PATH"]])
        outcome.summary = files["GITHUB_STEP_SUMMARY"].read_text()
        return outcome

    def gitlab(self, job: str, **env: str) -> Outcome:
        """Run a job of the GitLab pipeline."""
        pipeline = yaml.safe_load((self.checkout / ".gitlab-ci.yml").read_text())
        own = _extended(pipeline, job)
        variables: dict[str, Any] = pipeline["variables"] | own.get("variables", {})
        known = {"CI_PROJECT_DIR": str(self.checkout)} | env
        expanded = {name: _expanded(str(value), known) for name, value in variables.items()}
        job_env = self.env | expanded | known | {"GITLAB_CI": "true"}
        outcome = Outcome(0, "")
        before = own.get("before_script", pipeline["default"]["before_script"])
        self._bash("\n".join([*before, *own["script"]]), job_env, outcome, "-eo", "pipefail")
        after = own.get("after_script", pipeline["default"]["after_script"])
        self._bash("\n".join(after), job_env, outcome)
        return outcome

    def _bash(self, lines: str, env: Mapping[str, str], outcome: Outcome, *options: str) -> None:
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", *options, "-c", lines],
            cwd=self.checkout,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=600,
        )
        outcome.said += done.stdout.decode(errors="replace")
        outcome.code = outcome.code or done.returncode


def _evaluated(text: str, known: Mapping[str, str]) -> str:
    """Put in what expressions come to; one that nobody told the value of is a KeyError."""
    return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: known[found[1]], text)


def _expanded(text: str, known: Mapping[str, str]) -> str:
    """Put in variables, as GitLab does within `variables:`; names are as long as they can be."""
    return re.sub(r"\$(\w+)", lambda found: known.get(found[1], ""), text)


def _extended(pipeline: dict[str, Any], job: str) -> dict[str, Any]:
    """Return a job with what it extends."""
    own: dict[str, Any] = pipeline[job]
    return _extended(pipeline, own["extends"]) | own if "extends" in own else own
