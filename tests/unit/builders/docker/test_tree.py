from __future__ import annotations

import os
from pathlib import Path

import pytest

from lj_image.builders.docker.tree import Entry, context_tree, dockerfile_tree, source_date_epoch, tree
from lj_image.context import BuildContext, ContextFile
from lj_image.errors import BuildError


def test_a_context_holds_its_dockerfile_as_a_built_folder_does() -> None:
    context = BuildContext("FROM x\n", (ContextFile("a/b", b""),))
    assert [entry.path for entry in context_tree(context)] == ["Dockerfile", "a", "a/b"]
    assert dockerfile_tree(context) == (Entry("Dockerfile", 0o644, b"FROM x\n"),)


@pytest.mark.parametrize("path", ["", ".", "..", "/etc/passwd", "../x", "a/../../x", "a//b", "a/", "./a", "a/./b"])
def test_a_path_that_could_leave_the_context_is_refused(path: str) -> None:
    with pytest.raises(BuildError, match="not a clean relative path"):
        tree([ContextFile(path, b"")])


def test_two_files_at_one_path_are_refused() -> None:
    with pytest.raises(BuildError, match="two files claim a"):
        tree([ContextFile("a", b"1"), ContextFile("a", b"2")])


def test_a_file_cannot_be_a_folder_as_well() -> None:
    with pytest.raises(BuildError, match="a is a file and a folder"):
        tree([ContextFile("a", b""), ContextFile("a/b", b"")])


def test_a_stored_file_counts_as_changed_with_its_size_or_time(tmp_path: Path) -> None:
    store = tmp_path / "f"
    store.write_bytes(b"12")
    os.utime(store, ns=(1, 1))
    first = Entry("f", 0o644, store).fingerprint()
    assert Entry("other", 0o600, store).fingerprint() == first
    os.utime(store, ns=(2, 2))
    assert Entry("f", 0o644, store).fingerprint() != first


@pytest.mark.parametrize(("text", "time"), [("1700000000", 1700000000), ("", 0), ("soon", 0), ("-1", 0)])
def test_files_are_as_old_as_source_date_epoch_says(monkeypatch: pytest.MonkeyPatch, text: str, time: int) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", text)
    assert source_date_epoch() == time
