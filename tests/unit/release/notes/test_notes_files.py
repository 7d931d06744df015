"""Notes as files, and the command that writes them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from notes_records import record_of

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.release import Release
from lj_image.cli import run
from lj_image.release.notes import NoteFacts, write_note, write_notes
from lj_image.release.record import Records
from lj_image.templating import Templates

ROOT = Path(__file__).parents[4]
FOUND = {"runtime": "3.11.2", "tool": "1.4.2+ali", "library": "2.23.4"}


@pytest.fixture
def images(tiny: Callable[..., tuple[Catalog, Release]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("LJ_IMAGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("LJ_IMAGE_CONFIG", raising=False)
    catalog, _ = tiny()
    return str(catalog.root)


def test_every_language_is_written_in_each_form(
    tiny_facts: Callable[..., NoteFacts], templates: Templates, tmp_path: Path
) -> None:
    paths = write_notes(tiny_facts(), templates, tmp_path / "made/here")
    names = ["notes.en.md", "notes.en.html", "notes.zh.md", "notes.zh.html", "notes.json"]
    assert [path.name for path in paths] == names
    assert sorted(path.name for path in (tmp_path / "made/here").iterdir()) == sorted(names)
    assert json.loads(paths[-1].read_text())["release"] == "25.02"


def test_the_same_facts_give_the_same_bytes(
    tiny_facts: Callable[..., NoteFacts], templates: Templates, tmp_path: Path
) -> None:
    first = [path.read_bytes() for path in write_notes(tiny_facts(), templates, tmp_path / "a")]
    assert first == [path.read_bytes() for path in write_notes(tiny_facts(), templates, tmp_path / "b")]


def test_a_text_that_cannot_be_written_leaves_the_old_one_whole(tmp_path: Path) -> None:
    path = write_note(tmp_path / "note.md", "old")
    with pytest.raises(UnicodeEncodeError):
        write_note(path, "new \ud800")
    assert path.read_text() == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["note.md"]


def test_the_command_prints_the_note(images: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--images", images, "notes", "25.02", "--variant", "vendor"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("# tiny 25.02\n")
    assert "**Planned.**" in shown


def test_the_command_takes_the_record_of_this_machine(
    images: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = Records(tmp_path / "cache", "tiny")
    records.update("25.02-vendor", lambda _: record_of("tiny", "25.02", "vendor", FOUND))
    assert run(["--images", images, "notes", "25.02", "--variant", "vendor", "--lang", "zh"]) == 0
    assert "**已验证。**" in capsys.readouterr().out


def test_json_is_the_facts(images: str, capsys: pytest.CaptureFixture[str]) -> None:
    for option in (["--json"], ["--format", "json"]):
        assert run(["--images", images, "notes", "25.02", "--variant", "vendor", *option]) == 0
        told = json.loads(capsys.readouterr().out)
        assert (told["status"], told["tag"]) == ("planned", "25.02-vendor")


def test_output_goes_to_a_file_and_its_path_is_the_result(
    images: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "out/note.html"
    arguments = ["notes", "25.02", "--variant", "vendor", "--lang", "zh", "--format", "html", "--output", str(path)]
    assert run(["--images", images, *arguments]) == 0
    assert capsys.readouterr().out == f"{path}\n"
    assert path.read_text().startswith('<!doctype html>\n<html lang="zh-CN">')


def test_an_unknown_language_is_exit_code_2_and_writes_nothing(
    images: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "note.md"
    assert run(["--images", images, "notes", "25.02", "--variant", "vendor", "--lang", "fr", "-o", str(path)]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "error: the notes of tiny are not in 'fr'",
        "  its languages: en, zh",
    ]
    assert not path.exists()


def test_a_damaged_record_is_said(images: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = Records(tmp_path / "cache", "tiny").path("25.02-vendor")
    path.parent.mkdir(parents=True)
    path.write_text("{")
    assert run(["--images", images, "notes", "25.02", "--variant", "vendor"]) == 1
    shown = capsys.readouterr().err
    assert "the record of 25.02-vendor is damaged" in shown
    assert str(path) in shown


def test_the_record_of_another_image_under_this_name_is_refused(
    images: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = Records(tmp_path / "cache", "tiny")
    records.update("25.02-vendor", lambda _: record_of("large", "25.02", "vendor", FOUND))
    assert run(["--images", images, "notes", "25.02", "--variant", "vendor"]) == 1
    assert "the record is that of large 25.02-vendor, not of tiny 25.02-vendor" in capsys.readouterr().err


def test_the_second_note_loads_neither_engine_nor_schema(images: str) -> None:
    code = (
        "import sys; from lj_image.cli import run; arguments = sys.argv[1:]; run(arguments);"
        "print(sorted(sys.modules), file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, "--images", images, "notes", "25.02", "--variant", "vendor"]
    subprocess.run(command, capture_output=True, text=True, check=True)
    second = subprocess.run(command, capture_output=True, text=True, check=True)
    assert second.stdout.startswith("# tiny 25.02")
    for library in ("docker", "httpx", "rich", "pydantic", "yaml", "markdown_it"):
        assert f"'{library}'" not in second.stderr, library
