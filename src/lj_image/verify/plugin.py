"""The pytest plugin of one verification: gives the tests their promises and facts, and collects what comes of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NoReturn, cast

import pytest
from testinfra.host import Host

from lj_image.verify.backend import host_of
from lj_image.verify.container import RunningContainer
from lj_image.verify.facts import Facts, imports_of
from lj_image.verify.probes import Finding
from lj_image.verify.report import Check, Outcome
from lj_image.verify.subject import Subject

SUITE: Final = Path(__file__).parent / "suite"
_PROPERTY: Final = "lj-image"
_NO_GPU: Final = "the engine has no GPU"


@dataclass(slots=True)
class Noted:
    """What a test of ours says of its check besides whether it passed."""

    component: str | None = None
    expected: str | None = None
    found: str | None = None
    message: str = ""
    outcome: Outcome | None = None
    """Where it is neither of pytest's."""


class Verdict:
    """Given to each test of ours to say what was expected and found; it ends the test when they differ."""

    def __init__(self, node: pytest.Item) -> None:
        self._noted = Noted()
        node.user_properties.append((_PROPERTY, self._noted))

    def about(self, component: str) -> None:
        """Name the component that the check is about."""
        self._noted.component = component

    def give(self, kept: bool, *, expected: str, found: str | None, message: str = "") -> None:
        """Pass or fail with what was expected and what was found."""
        self._noted.expected, self._noted.found, self._noted.message = expected, found, message
        if not kept:
            pytest.fail(f"expected {expected}, found {found or 'nothing'}", pytrace=False)

    def give_finding(self, finding: Finding) -> None:
        """Pass, fail or leave open, as a probe has found."""
        if not finding.probed:
            self._noted.expected = finding.expected
            self.leave_open(finding.message)
        self.give(finding.kept, expected=finding.expected, found=finding.found, message=finding.message)

    def require_none(self, wrong: Iterable[str], *, expected: str) -> None:
        """Fail with all that is wrong."""
        named = tuple(wrong)
        self.give(not named, expected=expected, found="; ".join(named) or expected)

    def leave_open(self, reason: str) -> NoReturn:
        """End the test without a verdict: there is nobody to ask."""
        self._noted.outcome = "not_probed"
        self.skip(reason)

    def skip(self, reason: str) -> NoReturn:
        """End the test: it does not apply."""
        self._noted.message = reason
        pytest.skip(reason)


@dataclass(slots=True)
class VerifyPlugin:
    """Registered with pytest for one run."""

    subject: Subject
    known: Facts
    container: RunningContainer
    checks: list[Check] = field(default_factory=list)
    interrupted: bool = False
    _seconds: float = 0.0

    @pytest.fixture(scope="session")
    def host(self) -> Host:
        """The container, with testinfra's modules."""
        return host_of(self.container)

    @pytest.fixture(scope="session", name="subject")
    def give_subject(self) -> Subject:
        """What is verified."""
        return self.subject

    @pytest.fixture(scope="session")
    def facts(self) -> Facts:
        """What was found inside."""
        return self.known

    @pytest.fixture
    def verdict(self, request: pytest.FixtureRequest) -> Verdict:
        """Takes expected and found."""
        return Verdict(request.node)

    def pytest_configure(self, config: pytest.Config) -> None:
        """Make the marks known that tests of images use."""
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
    noted = next((cast(Noted, value) for name, value in report.user_properties if name == _PROPERTY), Noted())
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
    if Path(path).name in {file.name for file in SUITE.glob("test_*.py")} and (SUITE / Path(path).name).exists():
        return test.removeprefix("test_")
    return f"{_file_of(nodeid)}::{test}"


def _file_of(nodeid: str) -> str:
    return Path(nodeid.partition("::")[0]).name


def _message_of(report: pytest.TestReport) -> str:
    if report.skipped and isinstance(report.longrepr, tuple):
        return re.sub(r"^Skipped: ", "", report.longrepr[2])
    return report.longreprtext
