"""`lj-image new` on the command line: one file appears, or none."""

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
    return write_catalog().root


def names(images: Path) -> list[str]:
    return sorted(path.name for path in (images / "tiny/releases").iterdir())


def test_new_writes_a_file_that_lint_accepts_and_says_what_comes_next(
    images: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["--images", str(images), "new", "25.03", "--from", "25.02"]) == 0
    said = capsys.readouterr()
    assert said.out == f"{images}/tiny/releases/25.03.yaml\n"
    assert "lj-image lock 25.03" in said.err
    assert run(["--images", str(images), "lint"]) == 0
    assert names(images) == ["25.02.yaml", "25.03.yaml"]


def test_json_names_the_file(images: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--images", str(images), "new", "tiny/25.03", "--from", "25.02", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "file": f"{images}/tiny/releases/25.03.yaml",
        "release": "25.03",
    }


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["25.02", "--from", "25.02"], "not older"),
        (["25.3", "--from", "25.02"], "year and month"),
        (["25.03", "--from", "25.20"], "did you mean 25.02"),
        (["25.03"], "Missing option '--from'"),
    ],
)
def test_a_mistake_is_told_and_no_file_appears(
    images: Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["--images", str(images), "new", *arguments]) == 2
    assert words in capsys.readouterr().err
    assert names(images) == ["25.02.yaml"]


def test_a_file_that_exists_is_not_written_over(images: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--images", str(images), "new", "25.03", "--from", "25.02"]) == 0
    (images / "tiny/releases/25.03.yaml").write_text(RELEASE.replace("25.02", "25.03"))
    assert run(["--images", str(images), "new", "25.03", "--from", "25.02"]) == 2
    assert "exists already" in capsys.readouterr().err
    assert (images / "tiny/releases/25.03.yaml").read_text() == RELEASE.replace("25.02", "25.03")
