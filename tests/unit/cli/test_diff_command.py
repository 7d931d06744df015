"""`lj-image diff` as it is typed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lj_image.catalog.catalog import Catalog
from lj_image.cli import run

NEXT = 'release: "25.03"\nprevious: "25.02"\ncomponents: {tool: 1.4.1+ali}\n'


@pytest.fixture
def diff(write_catalog: Callable[..., Catalog], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("LJ_IMAGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("LJ_IMAGE_CONFIG", raising=False)
    root = write_catalog(r25_03=NEXT).root
    return lambda *arguments: run(["--images", str(root), "diff", *arguments])


def test_a_downgrade_is_seen_at_once(diff: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert diff("25.02", "25.03", "--variant", "open") == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[:2] == ["tiny 25.02 → 25.03, variant open, linux/amd64", "base: registry.example/base:12, the same"]
    assert "1 component: 1 DOWN" in shown
    assert any(line.split() == ["Tool", "1.4.2", "1.4.1", "DOWN", "no", "reason", "given"] for line in shown)
    assert shown[-1].startswith("note: 25.03: no lock")


@pytest.mark.parametrize(("after", "code"), [("25.02", 0), ("25.03", 1)])
def test_the_exit_code_tells_only_when_asked(after: str, code: int, diff: Callable[..., int]) -> None:
    assert diff("25.02", after, "--variant", "open", "--exit-code") == code
    assert diff("25.02", after, "--variant", "open") == 0


def test_no_difference_is_said(diff: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    diff("25.02", "25.02", "--variant", "open")
    assert "no difference" in capsys.readouterr().out


def test_json_and_markdown_are_results_alone(diff: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert diff("25.02", "25.03", "--variant", "open", "--json") == 0
    assert json.loads(capsys.readouterr().out)["components"][0]["kind"] == "down"
    assert diff("25.02", "25.03", "--variant", "open", "--format", "markdown") == 0
    assert "| Tool | 1.4.2 | 1.4.1 | **DOWN** | no reason given |" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("25.02", "25.99"), "25.99"),
        (("25.02", "gone.tar"), "no file gone.tar"),
        (("25.02", "25.03", "--variant", "opne"), "did you mean open?"),
        (("25.02@main", "25.03"), "not in git"),
        (("25.02", "25.03", "--variant", "open", "--platform", "linux/arm64"), "not made for arm64"),
    ],
)
def test_a_wrong_argument_ends_with_2_and_a_way_out(
    arguments: tuple[str, ...], message: str, diff: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert diff(*arguments) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.out == ""


def test_a_release_alone_is_compared_with_the_one_that_it_inherits_from(
    diff: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert diff("25.03", "--variant", "open") == 0

    alone = capsys.readouterr().out
    diff("25.02", "25.03", "--variant", "open")
    assert capsys.readouterr().out == alone


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("25.02", "tiny 25.02 inherits from no release"),
        ("25.03@main", "nothing to compare 25.03@main with"),
        ("tiny:25.03-open", "nothing to compare tiny:25.03-open with"),
    ],
)
def test_what_comes_from_nothing_needs_a_second_name(
    name: str, message: str, diff: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert diff(name, "--variant", "open") == 2

    told = capsys.readouterr().err
    assert message in told
    assert "a release (25.02, or 25.02@REVISION)" in told
