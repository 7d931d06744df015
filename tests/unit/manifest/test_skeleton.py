"""A project from nothing: valid, of this project's own base, and written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.lint import lint
from lj_image.errors import UsageError
from lj_image.manifest.skeleton import name_from, require_name, skeleton, write_project

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", ["toolbox", "2025", "1e5", "a.b-c"])
def test_the_project_is_valid_whatever_its_image_is_called(tmp_path: Path, name: str) -> None:
    write_project(tmp_path, skeleton(name, "25.10"))
    catalog = Catalog(tmp_path / "images")
    assert catalog.family_names == (name,)
    assert catalog.family(name).release_names == ("25.10",)
    assert lint(catalog) == ()


def test_nothing_is_left_to_be_filled_in() -> None:
    files = skeleton("toolbox", "25.10")
    assert sorted(files) == [
        ".gitignore",
        "README.md",
        "images/base-os/image.yaml",
        "images/toolbox/bases/base-os.yaml",
        "images/toolbox/image.yaml",
        "images/toolbox/releases/25.10.yaml",
    ]
    assert not [path for path, text in files.items() if "$" in text or "NAME" in text.replace("HOST/NAME", "")]


def test_the_base_is_the_one_of_this_project_without_its_compilers() -> None:
    files = skeleton("toolbox", "25.10")
    first = yaml.safe_load(files["images/base-os/image.yaml"])
    ours = yaml.safe_load((ROOT / "images/base-os/image.yaml").read_text())
    more = set(ours["bootstrap"].pop("include")) - set(first["bootstrap"].pop("include"))
    assert (first, more) == (ours, {"python3-dev", "gcc", "g++"})
    facts = (ROOT / "images/training-nv-pytorch/bases/base-os.yaml").read_text()
    assert files["images/toolbox/bases/base-os.yaml"].split("\n")[1:] == facts.split("\n")[1:]


def test_a_repository_without_files_is_empty_and_a_leftover_is_taken_away(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".lj-image-init-abc").mkdir()
    write_project(tmp_path, {"a/b": "text\n"})
    assert sorted(path.name for path in tmp_path.iterdir()) == [".git", "a"]


@pytest.mark.parametrize("existing", ["images/x/image.yaml", "notes.txt"])
def test_a_folder_that_holds_something_stays_as_it_is(tmp_path: Path, existing: str) -> None:
    (tmp_path / existing).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / existing).write_text("mine")
    with pytest.raises(UsageError, match="is not empty"):
        write_project(tmp_path, skeleton("toolbox", "25.10"))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / existing]


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UsageError, match="is no folder"):
        write_project(tmp_path / "file", {"a": ""})


@pytest.mark.parametrize("exists", [True, False])
def test_an_interruption_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exists: bool) -> None:
    folder = tmp_path / "project"
    if exists:
        folder.mkdir()
    rename = Path.rename

    def interrupted(self: Path, target: Path) -> Path:
        if Path(target) == folder / ".gitignore":  # the last one
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_project(folder, skeleton("toolbox", "25.10"))
    assert folder.exists() is exists
    assert not exists or list(folder.iterdir()) == []


@pytest.mark.parametrize(("folder", "name"), [("My Tool", "my-tool"), ("a_b.c", "a-b-c"), ("x", "x")])
def test_an_image_is_called_after_its_folder(folder: str, name: str) -> None:
    assert name_from(Path("/somewhere", folder)) == name


@pytest.mark.parametrize(
    ("name", "words"), [("Tool", "is no name"), ("a--b", "is no name"), ("base-os", "the base below")]
)
def test_other_names_are_refused(name: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        require_name(name)


def test_a_folder_without_a_letter_gives_no_name() -> None:
    with pytest.raises(UsageError, match="is no name"):
        name_from(Path("/"))
