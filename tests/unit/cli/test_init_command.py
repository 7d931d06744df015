"""`lj-image init` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lj_image.cli import run


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("LJ_IMAGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("LJ_IMAGE_CONFIG", raising=False)
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")


def test_the_first_commands_work_in_an_empty_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", "--name", "toolbox"]) == 0
    said = capsys.readouterr()
    assert "images/toolbox/image.yaml" in said.out.splitlines()
    assert said.err.startswith("next: lj-image lint, lj-image lock ")
    assert run(["lint"]) == 0
    release = next(Path("images/toolbox/releases").iterdir()).stem
    assert run(["show", release]) == 0
    assert "HTTPX" in capsys.readouterr().out
    assert run(["new", "99.12", "--from", release]) == 0
    assert run(["set", "99.12", "rich=14.1.0"]) == 0
    assert run(["lint"]) == 0


def test_a_new_folder_gives_the_image_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", "my tools/First", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["image"] == "first"
    assert all(Path("my tools/First", path).is_file() for path in told["files"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["full"], "is not empty: mine.txt"),
        (["new", "--name", "No"], "is no name"),
        (["full/mine.txt"], "is no folder"),
    ],
)
def test_a_mistake_is_told_and_nothing_is_written(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("full").mkdir()
    Path("full/mine.txt").write_text("mine")
    assert run(["init", *arguments, *(() if "--name" in arguments else ("--name", "tool"))]) == 2
    assert words in capsys.readouterr().err
    assert [str(path) for path in Path().rglob("*")] == ["full", "full/mine.txt"]
