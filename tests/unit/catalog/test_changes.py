from __future__ import annotations

import pytest

from lj_image.catalog.changes import Change, change_of, changes


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (None, "1.0", "added"),
        ("1.0", None, "removed"),
        ("2.42.1", "2.44.0", "up"),
        ("2.44.0", "2.43.0", "down"),  # 25.04 of the family really did this
        ("2.3.0+5de3e14", "2.3.0+5de3e148", "rebuilt"),
        ("15.0.50", "15.0.50.20240403-git", "up"),
    ],
)
def test_each_kind_of_change_is_named(before: str | None, after: str | None, kind: str) -> None:
    assert change_of("x", before, after) == Change("x", kind, before, after)  # type: ignore[arg-type]


def test_a_version_spelled_otherwise_is_no_change() -> None:
    assert change_of("cuda", "12.8.0", "12.8") is None


def test_changes_come_in_the_order_asked_for() -> None:
    found = changes({"a": "1", "b": "1"}, {"a": "2", "b": "2", "c": "1"}, order=["c", "b", "a"])

    assert [change.name for change in found] == ["c", "b", "a"]
