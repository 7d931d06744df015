from __future__ import annotations

from pathlib import Path

import pytest

from lj_image.documents.nodes import parse_document, read_document
from lj_image.errors import ManifestError


def test_values_keep_their_text_and_place() -> None:
    document = parse_document('release: "25.02"\ncomponents:\n  cuda: 12.8.0\n  odd: 25.10\n', "r.yaml")

    assert document.data == {"release": "25.02", "components": {"cuda": "12.8.0", "odd": 25.1}}
    assert document.texts["components", "odd"] == "25.10"
    assert str(document.place_of(("components", "odd"))) == "r.yaml:4:8"


def test_a_date_stays_text() -> None:
    assert parse_document("date: 2025-04-30\n", "r.yaml").data == {"date": "2025-04-30"}


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", "f.yaml:3:1", "the key 'a' is written twice, first in line 1"),
        ("25.10: x\n", "f.yaml:1:1", "the key 25.10 is read as the number 25.1"),
        ("yes: x\n", "f.yaml:1:1", "the key yes is read as the bool True"),
        ("a:\n\tb: 1\n", "f.yaml:2:1", "a tab in the indentation"),
        ("", "f.yaml:1:1", "the file is empty"),
        ("# only a comment\n", "f.yaml:1:1", "the file is empty"),
        ("- 1\n", "f.yaml:1:1", "found a list at the top, expected a mapping"),
        ("a: &x {b: 1}\nc: *x\n", "f.yaml:1:4", "a YAML alias (*name) stands for this value a second time"),
        ("a: \x07\n", "f.yaml:1:4", "a character that YAML does not allow: 7"),
    ],
)
def test_what_is_refused_is_named_with_its_place(text: str, at: str, message: str) -> None:
    with pytest.raises(ManifestError) as caught:
        parse_document(text, "f.yaml")

    assert (str(caught.value.location), caught.value.message) == (at, message)


def test_an_alias_that_holds_itself_is_refused() -> None:
    with pytest.raises(ManifestError, match="alias"):
        parse_document("a: &a [*a]\n", "f.yaml")


def test_an_unclosed_list_is_an_error_with_a_line() -> None:
    with pytest.raises(ManifestError, match="not valid YAML") as caught:
        parse_document("a: 1\nb: [\n", "f.yaml")
    assert caught.value.location is not None
    assert caught.value.location.line == 3


def test_a_file_that_is_not_utf8_is_named_with_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "release.yaml"
    path.write_bytes(b"a: 1\nname: caf\xe9\n")

    with pytest.raises(ManifestError, match="not UTF-8: byte 0xe9") as caught:
        read_document(path, "release.yaml")
    assert str(caught.value.location) == "release.yaml:2:10"


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    path = tmp_path / "release.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert read_document(path).data == {"a": 1}


def test_a_missing_file_is_an_error_without_a_traceback(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="No such file"):
        read_document(tmp_path / "absent.yaml", "absent.yaml")
