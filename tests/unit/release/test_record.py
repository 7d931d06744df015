from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lj_image.errors import LjImageError
from lj_image.release.record import Built, Pushed, Record, Records, Verified

BUILT = Built("sha256:1", "x:t", "inputs", "plan", "lock", "docker", "base", "2025-02-01T00:00:00+00:00", 1.0, 1)
VERIFIED = Verified("sha256:1", True, 3, (), {"ray": "2.42.1"}, "2025-02-01T00:00:00+00:00")
PUSHED = Pushed("r:t", "l:t", "sha256:d", "sha256:1", "vpc", "north", True, "2025-02-01T00:00:00+00:00")
RECORD = Record("tiny", "25.02", "open", BUILT, VERIFIED, (PUSHED,), "0.1.0")


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    records = Records(tmp_path, "tiny")
    assert records.read("25.02-open") is None
    records.update("25.02-open", lambda _: RECORD)
    assert records.read("25.02-open") == RECORD
    assert records.all() == (RECORD,)
    assert [path.name for path in records.folder.iterdir() if "partial" in path.name] == []


def test_only_a_passed_proof_of_this_very_image_counts() -> None:
    assert RECORD.proves("sha256:1")
    assert not RECORD.proves("sha256:2")
    assert not replace(RECORD, verified=replace(VERIFIED, passed=False)).proves("sha256:1")
    assert not replace(RECORD, verified=None).proves("sha256:1")


def test_a_reference_is_kept_once() -> None:
    moved = replace(PUSHED, digest="sha256:e")
    assert RECORD.with_pushed(moved).pushed == (moved,)


@pytest.mark.parametrize(
    "text", ["", "{", "{}", json.dumps({"format": 99}), json.dumps({"format": 1, "built": {"image_id": "x"}})]
)
def test_a_damaged_record_is_named_and_left_as_it_is(tmp_path: Path, text: str) -> None:
    records = Records(tmp_path, "tiny")
    records.folder.mkdir(parents=True)
    records.path("25.02-open").write_text(text)
    with pytest.raises(LjImageError, match=r"the record of 25\.02-open is damaged") as caught:
        records.update("25.02-open", lambda _: RECORD)
    assert str(caught.value.location) == str(records.path("25.02-open"))
    assert records.path("25.02-open").read_text() == text
