"""A good image passes; whatever is spoiled in it is named by the check that is there for it, and by no other."""

from __future__ import annotations

import time
from pathlib import Path
from xml.etree import ElementTree

import pytest
from verify_images import shared_library
from verify_workbench import SECRET, Workbench

from lj_image.errors import VerificationError
from lj_image.verify.container import LABEL
from lj_image.verify.report import VerifyReport, plain_lines

SITE = "/usr/local/lib/python3.11/dist-packages"

INSIDE = {
    "component[tool]": f"RUN sed -i s/1.4.2/1.4.3/ {SITE}/tool-1.4.2.dist-info/METADATA",
    "distribution[tool]": "",
    "imports[tool]": f"RUN echo 'raise SystemError(1)' >> {SITE}/tool.py",
    "distribution[fussy]": f"RUN rm -r {SITE}/fussy*",
    "protected[guarded]": f"RUN echo 'LEVEL = 2' >> {SITE}/guarded.py",
    "complaints": f"COPY METADATA {SITE}/grumpy-1.0.dist-info/METADATA",
    "component[cuda]": "COPY libcudart.so.12 /usr/lib/libcudart.so.12",
    "component[cudnn]": "RUN rm /usr/lib/libcudnn.so.9",
    "component[nvrtc]": "RUN echo broken > /usr/lib/libnvrtc.so.12",
    "component[vendor]": "ENV LD_LIBRARY_PATH=/usr/lib",
    "env[LD_LIBRARY_PATH]": "",
    "component[kit]": "RUN rm /opt/vendor/notice && chmod 700 /opt/vendor/bin/run",
    "component[motd]": "RUN echo more >> /etc/motd",
    "test_own.py::test_file": "",
    "component[shell]": "RUN sed -i '/^Package: bash$/,/^$/s/^Version: 5/Version: 6/' /var/lib/dpkg/status",
    "component[ran]": "RUN echo 1.2.4 > /opt/ran",
    "constraints": "RUN sed -i s/guarded/other/ /etc/lj-image/constraints.txt",
}
"""Check -> what spoils it; empty where the line before it does that too."""

OUTSIDE = {
    "secrets[layers]": f"RUN echo password={SECRET.decode()} > /opt/netrc\nRUN rm /opt/netrc",
    "secrets[history]": "",
    "secrets[configuration]": f"LABEL token={SECRET.decode()}",
    "litter": "RUN mkdir -p /root/.cache/pip && echo x > /root/.cache/pip/x && echo x > /wheels.whl",
    "env[MODE]": "ENV MODE=slow",
    "base_environment": "ENV BASE_BUILD=8",
    "component[build]": "",
    "label[org.opencontainers.image.version]": "LABEL org.opencontainers.image.version=25.03-open",
    "entrypoint": 'ENTRYPOINT ["/bin/bash"]',
    "cmd": "",
    "workdir": "WORKDIR /",
}


@pytest.fixture(scope="module")
def good(workbench: Workbench) -> VerifyReport:
    return workbench.verify()


@pytest.fixture(scope="module")
def spoiled_inside(workbench: Workbench, tmp_path_factory: pytest.TempPathFactory) -> VerifyReport:
    files = {
        "libcudart.so.12": shared_library(tmp_path_factory.mktemp("lib"), "cudart", 12040),
        "METADATA": b"Metadata-Version: 2.1\nName: grumpy\nVersion: 1.0\nRequires-Dist: nowhere\n",
    }
    return workbench.verify(workbench.spoiled("verify-inside", "\n".join(INSIDE.values()), files))


@pytest.fixture(scope="module")
def spoiled_outside(workbench: Workbench) -> VerifyReport:
    return workbench.verify(workbench.spoiled("verify-outside", "\n".join(OUTSIDE.values())))


def outcomes(report: VerifyReport, outcome: str) -> set[str]:
    return {check.name for check in report.checks if check.outcome == outcome}


def test_a_good_image_passes(good: VerifyReport) -> None:
    assert good.passed, "\n".join(plain_lines(good))
    assert outcomes(good, "not_probed") == {"component[perf]"}
    assert outcomes(good, "skipped") == {"protected[absent]", "test_own.py::test_gpu"}


def test_what_was_found_is_reported_per_component(good: VerifyReport) -> None:
    assert good.found["cuda"] == "12.8"
    assert good.found["cudnn"] == "9.7.0"
    assert good.found["vendor"] == "2.23.4"
    assert good.found["debian"] == "12"
    assert "perf" not in good.found


@pytest.mark.parametrize("check", INSIDE)
def test_what_is_spoiled_inside_is_caught(spoiled_inside: VerifyReport, check: str) -> None:
    assert check in outcomes(spoiled_inside, "failed"), "\n".join(plain_lines(spoiled_inside))


@pytest.mark.parametrize("check", OUTSIDE)
def test_what_is_spoiled_outside_is_caught(spoiled_outside: VerifyReport, check: str) -> None:
    assert check in outcomes(spoiled_outside, "failed"), "\n".join(plain_lines(spoiled_outside))


def test_nothing_else_fails(spoiled_inside: VerifyReport, spoiled_outside: VerifyReport) -> None:
    assert outcomes(spoiled_inside, "failed") == set(INSIDE)
    assert outcomes(spoiled_outside, "failed") == set(OUTSIDE)


def test_a_failure_names_expected_and_found(spoiled_inside: VerifyReport) -> None:
    lines = "\n".join(plain_lines(spoiled_inside))
    assert "expected 1.4.2, found 1.4.3" in lines
    assert "expected 12.8.0, found 12.4" in lines
    assert "/opt/vendor/notice is missing" in lines
    assert "/opt/vendor/bin/run has mode 0700 instead of 0755" in lines
    assert "programs load /usr/lib/libnccl.so.2 instead of /opt/vendor/lib/libnccl.so.2" in lines
    assert "grumpy 1.0 requires nowhere, which is not installed." in lines


def test_no_report_shows_a_secret(spoiled_outside: VerifyReport) -> None:
    assert SECRET.decode() not in "\n".join(plain_lines(spoiled_outside))


def test_a_second_run_reads_no_layer_and_takes_seconds(
    workbench: Workbench, good: VerifyReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workbench.api, "get_image", None)
    started = time.monotonic()
    report = workbench.verify()
    assert report.passed
    assert time.monotonic() - started < 15, "the comparison alone takes about two seconds"


def test_junit_has_the_names_of_the_checks(workbench: Workbench, good: VerifyReport, tmp_path: Path) -> None:
    report = workbench.verify(junit=tmp_path / "deep" / "verify.xml")
    cases = ElementTree.parse(tmp_path / "deep" / "verify.xml").findall(".//testcase")
    assert [case.get("name") for case in cases] == [check.name for check in report.checks]


def test_no_container_is_left(workbench: Workbench, good: VerifyReport | None) -> None:
    left = workbench.api.containers(all=True, filters={"label": LABEL})
    mine = [item for item in left if item["Image"] in (workbench.subject.image_id, workbench.subject.base_image_ref)]
    assert mine == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, VerificationError("broken")])
def test_nothing_is_left_after_ctrl_c_or_an_error(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def interrupted(*args: object, **more: object) -> None:
        raise error

    monkeypatch.setattr("lj_image.verify.facts.ask", interrupted)
    with pytest.raises(error if isinstance(error, type) else type(error)):
        workbench.verify()
    test_no_container_is_left(workbench, None)


def test_an_absent_image_is_an_error_with_a_way_out(workbench: Workbench) -> None:
    with pytest.raises(VerificationError, match="has no image") as failure:
        workbench.verify("sha256:" + "0" * 64)
    assert "lj-image build" in (failure.value.hint or "")
