"""What a tree becomes; the expected values are what `COPY` of the same context leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from lj_image.builders.oci.entries import EARLIEST_TIME, Entry, File, Folder, Streamed, Written
from lj_image.builders.oci.trees import WRITTEN_BYTES, constraints_entries, tree_entries
from lj_image.catalog.release import FilesSource
from lj_image.errors import BuildError
from lj_image.plan import ConstraintsLayer


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    found = tmp_path / "overlay"
    (found / "bin").mkdir(parents=True)
    (found / "share" / "empty").mkdir(parents=True)
    (found / "bin" / "tool").write_bytes(b"#!/bin/sh\n")
    (found / "bin" / "tool").chmod(0o4755)
    (found / "README").write_bytes(b"read me\n")
    (found / "README").chmod(0o640)
    return found


def entries(tree: Path, path: str = "/opt/ours/") -> dict[str, Entry]:
    return {entry.path: entry for entry in tree_entries(FilesSource(tree, path))}


def content(entry: Entry) -> bytes:
    assert isinstance(entry, File)
    assert isinstance(entry.content, Written)
    return entry.content.content


def test_files_come_with_their_permission_bits_alone_and_no_time_of_the_checkout(tree: Path) -> None:
    found = entries(tree)
    assert list(found) == ["opt/ours/README", "opt/ours/bin", "opt/ours/bin/tool"]
    readme, tool = found["opt/ours/README"], found["opt/ours/bin/tool"]
    assert isinstance(readme, File)
    assert isinstance(tool, File)
    assert (readme.mode, tool.mode) == (0o640, 0o755)
    assert (content(readme), content(tool)) == (b"read me\n", b"#!/bin/sh\n")
    assert {entry.mtime for entry in found.values()} == {EARLIEST_TIME}
    assert found["opt/ours/bin"] == Folder("opt/ours/bin", 0o755, EARLIEST_TIME, "overlay/")


def test_a_link_to_a_file_is_that_file_and_links_to_folders_and_bytecode_are_nothing(tree: Path) -> None:
    (tree / "link").symlink_to("README")
    (tree / "folder").symlink_to("bin")
    (tree / "dangling").symlink_to("nowhere")
    (tree / "__pycache__").mkdir()
    (tree / "__pycache__" / "a.pyc").write_bytes(b"x")
    found = entries(tree)
    assert content(found["opt/ours/link"]) == b"read me\n"
    assert sorted(found) == ["opt/ours/README", "opt/ours/bin", "opt/ours/bin/tool", "opt/ours/link"]


@pytest.mark.parametrize("path", ["/", "/etc", "/with space/"])
def test_the_target_may_be_anywhere(tree: Path, path: str) -> None:
    folder = path.strip("/")
    assert f"{folder}/README".lstrip("/") in entries(tree, path)


def test_a_large_file_is_streamed_while_its_entry_is_the_current_one(tree: Path) -> None:
    (tree / "large").write_bytes(b"x" * (WRITTEN_BYTES + 1))
    [large] = [entry for entry in _read(tree) if entry[0] == "opt/ours/large"]
    assert large[1] == WRITTEN_BYTES + 1


def _read(tree: Path) -> list[tuple[str, int]]:
    found = []
    for entry in tree_entries(FilesSource(tree, "/opt/ours")):
        if isinstance(entry, File) and isinstance(entry.content, Streamed):
            found.append((entry.path, len(entry.content.reader.read(entry.content.size_bytes + 9))))
    return found


def test_a_file_that_cannot_be_opened_is_named(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, *_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(BuildError, match="cannot be read: Permission denied") as caught:
        entries(tree)
    assert str(caught.value.location) == str(tree / "README")


LAYER = ConstraintsLayer("protected packages", (), "torch==2.6.0\n", "")


def test_constraints_are_a_file_of_root_that_anyone_reads() -> None:
    [entry] = constraints_entries(LAYER, None)
    assert isinstance(entry, File)
    assert (entry.path, entry.mode) == ("etc/lj-image/constraints.txt", 0o644)
    assert content(entry) == b"torch==2.6.0\n"


@pytest.mark.parametrize(("workdir", "folder"), [("/workspace", "workspace"), ("/srv//a/", "srv/a"), ("app", "app")])
def test_the_folder_to_start_in_is_made(workdir: str, folder: str) -> None:
    _, entry = constraints_entries(LAYER, workdir)
    assert (type(entry), entry.path) == (Folder, folder)


def test_the_root_needs_no_folder() -> None:
    assert len(list(constraints_entries(LAYER, "/"))) == 1
