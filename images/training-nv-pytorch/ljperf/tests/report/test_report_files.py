from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ljperf.report.files import ReportNotWrittenError, write_whole


@contextmanager
def full_disk() -> Iterator[None]:
    """No file may grow: what a full file system answers, but for its errno (EFBIG).

    No fixture: pytest writes its dots before fixtures end, perhaps into a file.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_file_holds_what_was_written_and_nothing_is_beside_it(tmp_path: Path) -> None:
    write_whole(tmp_path / "r.json", "größer\n")
    assert (tmp_path / "r.json").read_text(encoding="utf-8") == "größer\n"
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]


def test_others_may_read_it_as_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    write_whole(tmp_path / "r.json", "x")
    assert (tmp_path / "r.json").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_full_disk_leaves_the_old_file_and_no_half_of_a_new_one(tmp_path: Path) -> None:
    (tmp_path / "r.json").touch()
    with full_disk(), pytest.raises(ReportNotWrittenError, match="cannot be written: File too large") as raised:
        write_whole(tmp_path / "r.json", "new")
    assert raised.value.location == str(tmp_path / "r.json")
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]
    assert not (tmp_path / "r.json").stat().st_size


def test_a_missing_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(ReportNotWrittenError, match="No such file or directory"):
        write_whole(tmp_path / "none" / "r.json", "x")
