"""The journal of uploads: what is kept over the end of a process, and who may read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lj_image.registry.uploading.journal import FILE, Journal, Place

BLOB = Place("r.example", "team/x", "sha256:" + "1" * 64, 1000)
OTHER = Place("r.example", "team/y", "sha256:" + "1" * 64, 1000)
WHERE = "https://r.example/v2/team/x/blobs/uploads/1?_state=secret"


def opened(folder: Path, at: float = 0.0) -> Journal:
    journal = Journal.open(folder, clock=lambda: at)
    assert journal is not None
    return journal


def test_the_newest_place_of_an_upload_counts(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        journal.note(BLOB, "https://r.example/old", 100)
        journal.note(BLOB, WHERE, 200)
    with opened(tmp_path) as journal:
        assert journal.location(BLOB) == WHERE
        assert journal.location(OTHER) is None


def test_what_is_over_is_forgotten(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        journal.note(BLOB, WHERE, 100)
        journal.forget(BLOB)
        journal.forget(OTHER)
    with opened(tmp_path) as journal:
        assert journal.location(BLOB) is None
    assert "secret" not in (tmp_path / FILE).read_text()


def test_each_line_is_there_as_soon_as_it_is_noted(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        journal.note(BLOB, WHERE, 100)
        assert WHERE in (tmp_path / FILE).read_text()


def test_what_is_older_than_a_day_is_dropped(tmp_path: Path) -> None:
    with opened(tmp_path, at=1_000_000) as journal:
        journal.note(BLOB, WHERE, 100)
    with opened(tmp_path, at=1_000_000 + 25 * 3600) as journal:
        assert journal.location(BLOB) is None


@pytest.mark.parametrize("rest", ['{"host": "r.exa', "null\n", "[]\n", '{"host": 1}\n', "\x00\n", "\udcff"])
def test_half_a_line_and_nonsense_are_passed_over(tmp_path: Path, rest: str) -> None:
    with opened(tmp_path) as journal:
        journal.note(BLOB, WHERE, 100)
    with (tmp_path / FILE).open("a", errors="surrogateescape") as file:
        file.write(rest)
    with opened(tmp_path) as journal:
        assert journal.location(BLOB) == WHERE


def test_nobody_else_may_read_it(tmp_path: Path) -> None:
    with opened(tmp_path / "new") as journal:
        journal.note(BLOB, WHERE, 100)
    assert (tmp_path / "new" / FILE).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "new").stat().st_mode & 0o077 == 0


def test_a_second_process_goes_without(tmp_path: Path) -> None:
    with opened(tmp_path):
        assert Journal.open(tmp_path) is None
    with opened(tmp_path):
        pass


def test_where_nothing_can_be_written_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert Journal.open(tmp_path / "file") is None
