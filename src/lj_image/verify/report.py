"""The outcome of a verification: a value, and its forms as JSON, JUnit XML and a table."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from xml.etree import ElementTree

from lj_image.whole import write_whole

if TYPE_CHECKING:
    from rich.console import Console

Outcome = Literal["passed", "failed", "skipped", "not_probed"]

_MARKS: Final[Mapping[Outcome, tuple[str, str]]] = {
    "passed": ("ok", "green"),
    "failed": ("FAILED", "bold red"),
    "skipped": ("skipped", "yellow"),
    "not_probed": ("not probed", "yellow"),
}
# XML 1.0 §2.2: characters that no document may hold, not even escaped.
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Check:
    """One promise, compared with what was found."""

    name: str
    """Such as `component[cudnn]`."""
    component: str | None
    """Id of the component it is about."""
    outcome: Outcome
    expected: str | None = None
    found: str | None = None
    message: str = ""
    """Why it failed or was not made; empty when there is nothing to add."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """All checks of one image, by its id."""

    image_id: str
    checks: tuple[Check, ...]
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether nothing failed, and anything was checked at all."""
        return any(check.outcome == "passed" for check in self.checks) and not self.failed

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if check.outcome == "failed")

    @property
    def found(self) -> Mapping[str, str]:
        """Component id -> the version found inside."""
        return {
            check.component: check.found
            for check in self.checks
            if check.component is not None and check.found is not None and check.name.startswith("component[")
        }

    def counts(self) -> Mapping[Outcome, int]:
        """Return how many checks had each outcome; all four are named."""
        counted = Counter(check.outcome for check in self.checks)
        return {outcome: counted[outcome] for outcome in _MARKS}

    def summary(self) -> str:
        """Return one sentence: the verdict, then the numbers."""
        numbers = ", ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in self.counts().items() if count)
        return f"{'verified' if self.passed else 'NOT verified'}: {numbers or 'no checks'} in {self.seconds:.1f} s"


def to_json(report: VerifyReport) -> dict[str, Any]:
    """Return the report as plain values for `json.dumps`."""
    return {
        "image_id": report.image_id,
        "passed": report.passed,
        "counts": dict(report.counts()),
        "seconds": round(report.seconds, 3),
        "found": dict(report.found),
        "checks": [asdict(check) | {"seconds": round(check.seconds, 4)} for check in report.checks],
    }


def to_junit(report: VerifyReport, *, suite: str) -> str:
    """Return the report as JUnit XML, with the names that a person reads elsewhere too."""
    counts = report.counts()
    root = ElementTree.Element("testsuites")
    element = ElementTree.SubElement(
        root,
        "testsuite",
        name=suite,
        tests=str(len(report.checks)),
        failures=str(counts["failed"]),
        errors="0",
        skipped=str(counts["skipped"] + counts["not_probed"]),
        time=f"{report.seconds:.3f}",
    )
    properties = ElementTree.SubElement(element, "properties")
    ElementTree.SubElement(properties, "property", name="image_id", value=report.image_id)
    for check in report.checks:
        _add_case(element, check, suite)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _add_case(parent: ElementTree.Element, check: Check, suite: str) -> None:
    case = ElementTree.SubElement(
        parent, "testcase", classname=_xml(suite), name=_xml(check.name), time=f"{check.seconds:.4f}"
    )
    match check.outcome:
        case "failed":
            failure = ElementTree.SubElement(case, "failure", message=_xml(explanation(check).partition("\n")[0]))
            failure.text = _xml(explanation(check))
        case "skipped":
            ElementTree.SubElement(case, "skipped", message=_xml(check.message))
        case "not_probed":
            ElementTree.SubElement(case, "skipped", message=_xml(f"not probed: {check.message}"))
        case "passed":
            pass


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)


def write_junit(report: VerifyReport, path: Path, *, suite: str) -> None:
    """Write the JUnit file; it appears by rename."""
    write_whole(path, to_junit(report, suite=suite), alone=True)


def explanation(check: Check) -> str:
    """Return what to say of a check: expected and found where it has them, then its message."""
    compared = f"expected {check.expected}, found {check.found or 'nothing'}" if check.expected is not None else ""
    if check.outcome == "passed":
        return check.found or check.message
    if check.outcome != "failed":
        return check.message
    return "; ".join(part for part in (compared, check.message) if part) or "failed"


def plain_lines(report: VerifyReport, *, all_checks: bool = True) -> tuple[str, ...]:
    """Return the table as lines, for CI logs; without `all_checks`, components and what did not pass."""
    shown = [check for check in report.checks if all_checks or _matters(check)]
    width = max((len(check.name) for check in shown), default=0)
    lines = (f"{_MARKS[check.outcome][0]:<10}  {check.name:<{width}}  {_indented(check, width)}" for check in shown)
    return (*(line.rstrip() for line in lines), report.summary())


def _matters(check: Check) -> bool:
    """Say whether a person wants to see it: the versions inside are the answer, everything else only if it is wrong."""
    return check.outcome != "passed" or check.name.startswith("component[")


def _indented(check: Check, width: int) -> str:
    return explanation(check).replace("\n", "\n" + " " * (width + 14))


def show(report: VerifyReport, console: Console, *, all_checks: bool = True) -> None:
    """Print the report: a table on a terminal, plain lines elsewhere."""
    if not console.is_terminal:
        for line in plain_lines(report, all_checks=all_checks):
            console.out(line, highlight=False)
        return
    from rich.table import Table
    from rich.text import Text

    table = Table("", "check", "found", box=None, pad_edge=False, show_header=False)
    for check in report.checks:
        if all_checks or _matters(check):
            mark, style = _MARKS[check.outcome]
            table.add_row(Text(mark, style=style), Text(check.name), Text(explanation(check)))
    console.print(table)
    console.print(Text(report.summary(), style="bold green" if report.passed else "bold red"))
