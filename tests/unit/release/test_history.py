from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lj_image.cli import run
from lj_image.errors import UsageError
from lj_image.release.history import history
from lj_image.release.record import Built, Pushed, Record, Records, Verified

BUILT = Built(
    image_id="sha256:" + "a" * 64,
    tag="tiny:25.02-open",
    inputs="sha256:1",
    plan="sha256:2",
    lock="sha256:3",
    builder="docker",
    base="base@sha256:4",
    at="2025-03-01T10:00:00+00:00",
    seconds=1.0,
    size_bytes=3 * 1024**3,
)
VERIFIED = Verified(BUILT.image_id, True, 12, (), {}, "2025-03-01T10:05:00+00:00")


def pushed(reference: str, at: str, image_id: str = BUILT.image_id) -> Pushed:
    return Pushed(reference, reference, "sha256:5", image_id, "public", None, True, at)


def keep(cache: Path, record: Record, key: str | None = None, folder: str | None = None) -> Path:
    records = Records(cache, folder or record.image)
    key = key or f"{record.release}-{record.variant}"
    records.update(key, lambda _: record)
    return records.path(key)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a cache with three records in two families."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("LJ_IMAGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("LJ_IMAGE_CONFIG", raising=False)
    folder = tmp_path / "cache"
    places = (pushed("r.example/tiny:1", "2025-03-02T10:00:00+00:00"), pushed("s.example/tiny:1", "2025-03-01T11:00"))
    keep(folder, Record("tiny", "25.02", "open", BUILT, VERIFIED, places))
    keep(folder, Record("tiny", "25.03", "open", replace(BUILT, at="2025-04-01T10:00:00+00:00")))
    keep(folder, Record("other", "25.02", "open", replace(BUILT, at="2025-01-01T10:00:00+00:00"), VERIFIED))
    return folder


def test_records_of_every_family_come_newest_first(cache: Path) -> None:
    found = [(item.record.image, item.record.release) for item in history(cache).kept]
    assert found == [("tiny", "25.03"), ("tiny", "25.02"), ("other", "25.02")]


def test_a_release_can_be_named_with_and_without_its_image(cache: Path) -> None:
    assert len(history(cache, "25.02").kept) == 2
    assert [item.record.image for item in history(cache, "other/25.02").kept] == ["other"]


def test_an_unknown_release_names_the_closest(cache: Path) -> None:
    with pytest.raises(UsageError, match=r"nothing is recorded of '25\.04'") as caught:
        history(cache, "25.04")
    assert "25.02" in (caught.value.hint or "")


@pytest.mark.parametrize("text", ["", "{", "null", "[]", '{"format": 99}', '{"format": 1}', "\xff"])
def test_a_damaged_record_is_said_and_hides_no_other(cache: Path, text: str) -> None:
    path = cache / "records/tiny/25.04-open.json"
    path.write_bytes(text.encode("latin-1"))
    found = history(cache)
    assert len(found.kept) == 3
    assert [str(error.location) for error in found.refused] == [str(path)]


def test_a_record_of_another_image_or_release_is_refused_with_its_path(cache: Path) -> None:
    strange = keep(cache, Record("other", "25.01", "open", BUILT), folder="tiny")
    renamed = keep(cache, Record("tiny", "25.01", "open", BUILT), key="25.09-open")
    found = history(cache)
    assert [str(error.location) for error in found.refused] == [str(strange), str(renamed)]
    assert found.refused[0].message == "this is the record of other 25.01-open, not of tiny 25.01-open"


def test_a_partial_image_keeps_its_own_record(cache: Path) -> None:
    keep(cache, Record("tiny", "25.02", "open", replace(BUILT, partial=True)), key="25.02-open-partial")
    assert not history(cache).refused


def test_the_proof_and_the_places_of_an_earlier_image_do_not_count(cache: Path) -> None:
    newer = replace(BUILT, image_id="sha256:" + "b" * 64)
    place = pushed("r.example/tiny:1", "2025-03-02T10:00:00+00:00")
    keep(cache, Record("tiny", "25.02", "open", newer, VERIFIED, (place,)))
    (found,) = history(cache, "tiny/25.02").kept
    assert (found.proof, found.pushed_now()) == ("an earlier image", ())


def test_a_failed_proof_is_counted(cache: Path) -> None:
    keep(cache, Record("tiny", "25.02", "open", BUILT, replace(VERIFIED, passed=False, failed=("vllm",))))
    assert history(cache, "tiny/25.02").kept[0].proof == "failed: 1 of 12"


def test_the_command_shows_each_place_in_a_row(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["history", "tiny/25.02"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[0].split() == [
        "IMAGE",
        "RELEASE",
        "VARIANT",
        "BUILT",
        "(UTC)",
        "IMAGE",
        "ID",
        "GIB",
        "VERIFIED",
        "PUSHED",
    ]
    assert rows[1].split()[:7] == ["tiny", "25.02", "open", "2025-03-01", "10:00", "aaaaaaaaaaaa", "3.00"]
    assert rows[1].endswith("yes       2025-03-02 10:00  r.example/tiny:1")
    assert rows[2].strip() == "2025-03-01 11:00  s.example/tiny:1"


def test_the_command_gives_exit_code_1_for_a_damaged_record(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (cache / "records/tiny/25.04-open.json").write_text("{")
    assert run(["history", "--json"]) == 1
    printed = capsys.readouterr()
    assert len(json.loads(printed.out)["records"]) == 3
    assert "25.04-open.json" in printed.err


def test_an_empty_cache_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LJ_IMAGE_CACHE", str(tmp_path / "none"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert run(["history"]) == 0
    assert "nothing was built on this machine" in capsys.readouterr().err
    assert run(["history", "25.02"]) == 2
