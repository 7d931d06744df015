from __future__ import annotations

import io
import json
from pathlib import Path
from xml.etree import ElementTree

from rich.console import Console

from lj_image.verify.report import Check, VerifyReport, plain_lines, show, to_json, write_junit

CHECKS = (
    Check("component[cudnn]", "cudnn", "passed", "9.7.0.66", "9.7.0", seconds=0.001),
    Check("component[nccl]", "nccl", "failed", "2.23.4.11", "2.25.1", "in /usr/lib/libnccl.so.2"),
    Check("component[perf]", "perf", "not_probed", "5.4.30", None, "no probe is named"),
    Check("imports[vllm]", "vllm", "failed", "import vllm", None, "ImportError: \x1b[31mbroken\x00"),
    Check("test_own.py::test_gpu", None, "skipped", message="the engine has no GPU"),
)
REPORT = VerifyReport("sha256:1", CHECKS, 2.5)


def test_one_failure_fails_the_image() -> None:
    assert not REPORT.passed
    assert VerifyReport("sha256:1", (CHECKS[0], CHECKS[2], CHECKS[4])).passed


def test_an_image_of_which_nothing_was_checked_has_not_passed() -> None:
    assert not VerifyReport("sha256:1", ()).passed
    assert not VerifyReport("sha256:1", (CHECKS[2],)).passed


def test_found_versions_are_those_of_components() -> None:
    assert REPORT.found == {"cudnn": "9.7.0", "nccl": "2.25.1"}


def test_lines_name_expected_and_found() -> None:
    cudnn, nccl, perf, *rest = plain_lines(REPORT, all_checks=False)
    assert cudnn.split() == ["ok", "component[cudnn]", "9.7.0"]
    assert nccl.split() == (
        ["FAILED", "component[nccl]", "expected", "2.23.4.11,", "found", "2.25.1;", "in", "/usr/lib/libnccl.so.2"]
    )
    assert perf.startswith("not probed")
    assert rest[-1] == "NOT verified: 1 passed, 2 failed, 1 skipped, 1 not probed in 2.5 s"


def test_what_passed_is_shown_only_when_all_is_asked_for() -> None:
    report = VerifyReport("sha256:1", (Check("env[A]", None, "passed", "1", "1"), CHECKS[0]))
    assert [line.split()[1] for line in plain_lines(report, all_checks=False)[:-1]] == ["component[cudnn]"]
    assert [line.split()[1] for line in plain_lines(report)[:-1]] == ["env[A]", "component[cudnn]"]


def test_a_terminal_gets_a_table_with_the_same_words() -> None:
    said = io.StringIO()
    show(REPORT, Console(file=said, force_terminal=True, width=150, color_system=None))
    assert "component[nccl]" in said.getvalue()
    assert "expected 2.23.4.11, found 2.25.1" in said.getvalue()


def test_json_holds_everything() -> None:
    kept = json.loads(json.dumps(to_json(REPORT)))
    assert (kept["image_id"], kept["passed"], kept["counts"]["not_probed"]) == ("sha256:1", False, 1)
    assert kept["checks"][1]["expected"] == "2.23.4.11"


def test_junit_is_xml_whatever_a_message_holds(tmp_path: Path) -> None:
    write_junit(REPORT, tmp_path / "new" / "report.xml", suite="tiny:25.02")
    suite = ElementTree.parse(tmp_path / "new" / "report.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("5", "2", "2")
    failure = suite.find("testcase[@name='component[nccl]']/failure")
    assert failure is not None
    assert failure.get("message") == "expected 2.23.4.11, found 2.25.1; in /usr/lib/libnccl.so.2"
