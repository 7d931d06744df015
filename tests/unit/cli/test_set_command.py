"""`lj-image set` on the command line: the file is written whole or not at all, and what changed is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lj_image.catalog.catalog import Catalog
from lj_image.cli import run
from samples.tiny import RELEASE

Write = Callable[..., Catalog]


@pytest.fixture
def images(write_catalog: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("LJ_IMAGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("LJ_IMAGE_CONFIG", raising=False)
    return write_catalog(r25_03='release: "25.03"\nprevious: "25.02"\n').root


def release_file(images: Path, name: str = "25.02") -> Path:
    return images / "tiny" / "releases" / f"{name}.yaml"


def test_set_writes_the_version_and_says_what_changed(images: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--images", str(images), "set", "25.02", "the_tool=1.5.0"]) == 0
    assert release_file(images).read_text() == RELEASE.replace("1.4.2+ali", "1.5.0")
    said = capsys.readouterr()
    assert said.out.splitlines() == ["tool: 1.4.2+ali → 1.5.0", str(release_file(images))]
    assert said.err == "next: lj-image lock 25.02\n"


def test_set_says_that_a_version_was_inherited(images: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--images", str(images), "set", "25.03", "tool=1.5.0"]) == 0
    assert "tool: 1.4.2+ali (inherited) → 1.5.0" in capsys.readouterr().out
    assert run(["--images", str(images), "lint"]) == 0


def test_a_version_that_is_set_already_leaves_the_file_alone(images: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = release_file(images).stat()
    assert run(["--images", str(images), "set", "25.02", "tool=1.4.2+ali"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "tool: 1.4.2+ali, as before",
        f"{release_file(images)}: nothing to change",
    ]
    assert release_file(images).stat().st_mtime_ns == before.st_mtime_ns


def test_a_dry_run_prints_a_diff_and_writes_nothing(images: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--images", str(images), "set", "25.02", "tool=1.5.0", "--dry-run"]) == 0
    assert "-  tool: 1.4.2+ali\n+  tool: 1.5.0\n" in capsys.readouterr().out
    assert release_file(images).read_text() == RELEASE


def test_json_tells_versions_before_and_after(images: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--images", str(images), "set", "25.02", "tool=1.5.0", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["written"] is True
    assert told["changes"] == [{"component": "tool", "before": "1.4.2+ali", "after": "1.5.0", "inherited": False}]


def test_the_mode_of_the_file_and_a_link_to_it_stay(images: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.yaml"
    release_file(images).rename(elsewhere)
    elsewhere.chmod(0o640)
    release_file(images).symlink_to(elsewhere)
    assert run(["--images", str(images), "set", "25.02", "tool=1.5.0"]) == 0
    assert release_file(images).is_symlink()
    assert elsewhere.stat().st_mode & 0o777 == 0o640
    assert "tool: 1.5.0" in elsewhere.read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["25.02", "tol=1"], "did you mean tool or the_tool?"),
        (["25.02", "tool=1.5.0", "kid=12.9"], "unknown component 'kid'"),
        (["25.02", "tool"], "not `component=version`"),
        (["25.02", "tool="], "no version"),
        (["25.02", "tool=1 2"], "neither spaces nor control characters"),
        (["25.02", "tool=1", "tool=2"], "given twice"),
        (["25.2", "tool=1"], "no release '25.2'"),
        (["25.02", "tool=1", "--variant", "opn"], "did you mean open"),
        (["25.02"], "Missing argument"),
    ],
)
def test_a_mistake_is_told_and_nothing_changes(
    images: Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["--images", str(images), "set", *arguments]) == 2
    assert words in capsys.readouterr().err
    assert release_file(images).read_text() == RELEASE
    assert sorted(path.name for path in release_file(images).parent.iterdir()) == ["25.02.yaml", "25.03.yaml"]
