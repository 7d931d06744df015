"""The pytest plugin of one verification: gives each promise a test, and collects what comes of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import pytest

from lj_image.verify.container import RunningContainer
from lj_image.verify.facts import Facts, imports_of
from lj_image.verify.report import Check, Outcome
from lj_image.verify.subject import Subject
from lj_image.verify.verdict import NOTED, Noted

SUITE: Final = Path(__file__).parent / "suite"
_NO_GPU: Final = "the engine has no GPU"


RUN: Final = pytest.StashKey["VerifyPlugin"]()
"""Where fixtures find the run that they belong to."""


@dataclass(slots=True)
class VerifyPlugin:
    """Registered with pytest for one run."""

    subject: Subject
    known: Facts
    container: RunningContainer
    checks: list[Check] = field(default_factory=list)
    interrupted: bool = False
    _seconds: float = 0.0

    def pytest_configure(self, config: pytest.Config) -> None:
        """Make known the marks that tests of images use, and itself to the fixtures."""
        config.stash[RUN] = self
        config.addinivalue_line("markers", "gpu: needs a GPU in the container")

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Give each promise a test of its own."""
        if metafunc.definition.path.parent != SUITE:
            return
        for name, cases in self._cases().items():
            if name in metafunc.fixturenames:
                metafunc.parametrize(name, [value for _, value in cases], ids=[key for key, _ in cases])

    def _cases(self) -> dict[str, Sequence[tuple[str, Any]]]:
        plan = self.subject.plan
        return {
            "component": [(item.id, item) for item in plan.components()],
            "imported": [(component.id, (component, module)) for component, module in imports_of(self.subject)],
            "distribution": [(item.name, item) for item in plan.installed()],
            "protected": [(name, name) for name in plan.release.protected],
            "variable": [(name, (name, value)) for name, value in plan.env],
            "label": [(name, (name, value)) for name, value in sorted(self.subject.labels.items())],
        }

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out tests over nothing, and mark those that have no GPU to run on."""
        items[:] = [item for item in items if item.path.parent != SUITE or "[NOTSET]" not in item.name]
        for item in items:
            if item.get_closest_marker("gpu") and not self.container.gpu:
                item.add_marker(pytest.mark.skip(reason=_NO_GPU))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Count a file that cannot be loaded as failed: its tests are missing."""
        if report.failed:
            self.checks.append(Check(_file_of(report.nodeid), None, "failed", message=report.longreprtext))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the outcome of a test once it is known; a failing teardown is a failure of its own."""
        self._seconds = report.duration + (self._seconds if report.when != "setup" else 0.0)
        if report.when == "call" or report.outcome != "passed":
            self.checks.append(_check_of(report, self._seconds))

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Remember Ctrl-C, which pytest turns into an exit code that means other things too."""
        self.interrupted = excinfo.type is KeyboardInterrupt


def _check_of(report: pytest.TestReport, seconds: float) -> Check:
    noted = next((cast(Noted, value) for name, value in report.user_properties if name == NOTED), Noted())
    outcome: Outcome = noted.outcome if noted.outcome and report.skipped else report.outcome
    message = noted.message if noted.message or noted.expected is not None else _message_of(report)
    return Check(
        check_name(report.nodeid),
        noted.component,
        outcome,
        noted.expected,
        noted.found,
        message,
        seconds,
    )


def check_name(nodeid: str) -> str:
    """Return `component[cudnn]` of a test of ours, and `test_training.py::test_it` of an image's."""
    path, _, test = nodeid.partition("::")
    if (SUITE / Path(path).name).exists():
        return test.removeprefix("test_")
    return f"{_file_of(nodeid)}::{test}"


def _file_of(nodeid: str) -> str:
    return Path(nodeid.partition("::")[0]).name


def _message_of(report: pytest.TestReport) -> str:
    if report.skipped and isinstance(report.longrepr, tuple):
        return re.sub(r"^Skipped: ", "", report.longrepr[2])
    return report.longreprtext
