"""A file is there whole, or it is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from lj_image.whole import appearing, write_whole


def test_a_file_and_its_folder_appear_with_the_whole_content(tmp_path: Path) -> None:
    write_whole(tmp_path / "new" / "file", "Zürich\n", mode=0o640)

    assert (tmp_path / "new/file").read_bytes() == b"Z\xc3\xbcrich\n"
    assert (tmp_path / "new/file").stat().st_mode & 0o777 == 0o640
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["file"]


@pytest.mark.parametrize("alone", [True, False])
def test_what_was_there_stays_when_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: bool) -> None:
    (tmp_path / "file").write_text("before")

    def full(self: Path, content: bytes) -> int:
        self.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(tmp_path / "file", b"after", alone=alone)

    assert (tmp_path / "file").read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_writer_that_is_alone_writes_over_what_a_killed_one_left(tmp_path: Path) -> None:
    (tmp_path / ".file.partial").write_text("half of it")

    write_whole(tmp_path / "file", "all of it", alone=True)

    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("file", "all of it")]


def test_what_is_written_bit_by_bit_appears_at_the_end_of_the_block(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    with appearing(path, mode=0o640) as file:
        file.write(b"one ")
        assert not path.exists()
        file.write(b"two")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"one two", 0o640)
    assert [item.name for item in path.parent.iterdir()] == ["file"]


def test_a_block_that_fails_leaves_what_was_there_and_no_beginning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("before")

    def fail() -> None:
        with appearing(tmp_path / "file", mode=0o644) as file:
            file.write(b"after")
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        fail()
    assert [(item.name, item.read_text()) for item in tmp_path.iterdir()] == [("file", "before")]
