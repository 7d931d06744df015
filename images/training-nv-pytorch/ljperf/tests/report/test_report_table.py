from __future__ import annotations

import pytest
from ljperf.report.table import table


def test_numbers_are_aligned_right_and_words_left() -> None:
    shown = table(("what", "bytes"), [("a", 5), ("longer", 1200)])
    assert shown == "what    bytes\n------  -----\na           5\nlonger   1200"


def test_a_missing_value_is_a_dash_and_no_line_ends_in_blanks() -> None:
    shown = table(("what", "value"), [("speed", None), ("name", "x")])
    assert shown.splitlines()[2] == "speed  -"
    assert all(line == line.rstrip() for line in shown.splitlines())


def test_wide_characters_take_two_columns() -> None:
    assert table(("a", "b"), [("显存", "x"), ("mem", "y")]).splitlines()[2:] == ["显存  x", "mem   y"]


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="2 cells"):
        table(("a", "b"), [("only one",)])


def test_no_rows_leave_the_heading() -> None:
    assert table(("a", "b"), []) == "a  b\n-  -"
