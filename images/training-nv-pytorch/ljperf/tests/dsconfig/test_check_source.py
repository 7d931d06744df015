"""A config's text: places, and what JSON forbids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ljperf.dsconfig.source import ConfigNotReadError, Place, parse, read

hjson = pytest.importorskip("hjson")  # DeepSpeed's own reader

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
TREES = st.recursive(SCALARS, lambda part: st.lists(part) | st.dictionaries(st.text(), part), max_leaves=12)


@given(st.dictionaries(st.text(), TREES), st.sampled_from([None, 2]))
def test_json_is_read_as_json_reads_it(value: dict[str, Any], indent: int | None) -> None:
    source = parse(json.dumps(value, indent=indent), strict_json=True)
    assert source.config == value
    assert source.faults == ()


def test_every_key_has_its_place() -> None:
    source = parse('{\n  "a": 1,\n  "b": {"c": [1, {"d": 2}]}\n}', strict_json=True)
    assert source.places["/a"] == Place(2, 3)
    assert source.places["/b/c"] == Place(3, 9)
    assert source.places["/b/c/1/d"] == Place(3, 19)


LOOSE = [
    ('{"a": 1,}', "comma"),
    ('{"a": [1, 2,]}', "comma"),
    ('{"a": 1 // one\n}', "comment"),
    ('{"a": 1, # one\n "b": 2}', "comment"),
    ('{/* one\n two */ "a": 1}', "comment"),
    ("{'a': 1}", "single quotes"),
    ("{a: 1}", "double quotes"),
]


@pytest.mark.parametrize(("text", "words"), LOOSE)
def test_what_deepspeed_reads_and_json_forbids_depends_on_the_reader(text: str, words: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  JSONDecodeError is one, and its text is Python's
        json.loads(text)
    for strict, severity in ((True, "error"), (False, "warning")):
        source = parse(text, strict_json=strict)
        ((finding, place),) = source.faults
        assert (finding.severity, place.line) == (severity, 1)
        assert words in finding.message
        assert source.config == dict(hjson.loads(text))


def test_a_key_that_is_there_twice_is_an_error_with_both_lines() -> None:
    source = parse('{\n "zero_optimization": {"stage": 3},\n "zero_optimization": {"stage": 2}\n}', strict_json=False)
    ((finding, place),) = source.faults
    assert (finding.severity, place) == ("error", Place(3, 2))
    assert "line 2" in finding.message


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "True", "False", "None"])
def test_words_of_other_languages_are_errors_with_their_place(word: str) -> None:
    ((finding, place),) = parse(f'{{"a":\n  {word}}}', strict_json=False).faults
    assert (finding.severity, finding.pointer, place) == ("error", "/a", Place(2, 3))


@pytest.mark.parametrize(
    ("text", "where", "words"),
    [
        ("", "1:1", "object"),
        ("[1]", "1:1", "object"),
        ('{"a" 1}', "1:6", "colon"),
        ('{"a": 1 "b": 2}', "1:9", "comma"),
        ('{"a": 1', "1:8", "ends"),
        ('{\n"a": {"b": 1,\n', "3:1", "opened on line 2"),
        ('{"a": 1} x', "1:10", "after the end"),
        ('{"a": "x\ny"}', "1:7", "does not end"),
        ('{"a": 1_000}', "1:7", "expected a value"),
        ('{"a": .5}', "1:7", "expected a value"),
        ('{"a": 01}', "1:7", "expected a value"),
        ('{"a": "\\q"}', "1:7", "escape"),
        ('{"a": }', "1:7", "expected a value"),
        ('{"a":' * 100_000, "", "too deeply"),
    ],
)
def test_where_reading_cannot_go_on_line_and_column_are_told(text: str, where: str, words: str) -> None:
    with pytest.raises(ConfigNotReadError, match=words) as caught:
        parse(text, "c.json", strict_json=False)
    assert (caught.value.location or "").startswith(f"c.json:{where}" if where else "c.json")


def test_files_that_are_no_text_or_not_there_are_errors(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_bytes(b"\xff\xfe{")
    for path, words in ((tmp_path / "c.json", "UTF-8"), (tmp_path / "absent", "No such file"), (tmp_path, "directory")):
        with pytest.raises(ConfigNotReadError, match=words):
            read(path, strict_json=False)


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text('{"a": 1}', encoding="utf-8-sig")
    assert read(tmp_path / "c.json", strict_json=True).config == {"a": 1}
