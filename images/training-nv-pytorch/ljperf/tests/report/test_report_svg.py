from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from ljperf.report.svg import intervals, lines, page, stacked_bars, ticks

DRAWINGS = {
    "lines": lines("a < b", {"x & y": [3.0, 1.0, 2.0]}, "step", "s"),
    "one value": lines("t", {"x": [3.0]}, "step", "s"),
    "zeros": lines("t", {"x": [0.0, 0.0]}, "step", "s"),
    "none": lines("t", {"x": []}, "step", "s"),
    "bars": stacked_bars("t", {"loss": {"logits": 3.0, "states": 1.0}, "step": {"states": 1.0}}, "GiB", limit=5.0),
    "no bars": stacked_bars("t", {}, "GiB"),
    "intervals": intervals("t", {"compile": (0.2, 0.1, 0.3), "comm": (-0.1, -0.2, 0.0)}, "%"),
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_drawing_is_well_formed_and_has_no_number_that_is_none(name: str) -> None:
    ElementTree.fromstring(DRAWINGS[name])
    assert "nan" not in DRAWINGS[name]
    assert "inf" not in DRAWINGS[name]


def test_a_higher_value_is_drawn_higher_up() -> None:
    (points,) = re.findall(r'points="([^"]*)"', DRAWINGS["lines"])
    first, second, third = (float(point.split(",")[1]) for point in points.split())
    assert first < third < second  # y grows downwards; 3, 1, 2


def test_the_parts_of_a_bar_stand_on_each_other_in_proportion() -> None:
    boxes = [
        element.attrib for element in ElementTree.fromstring(DRAWINGS["bars"]).iter() if "height" in element.attrib
    ]
    logits, states = boxes[1:3]
    assert float(logits["height"]) == pytest.approx(3 * float(states["height"]), abs=0.2)
    bottom = float(logits["y"]) + float(logits["height"])
    assert bottom == pytest.approx(270, abs=0.2)  # the axis: 320 high, 50 below it
    assert float(states["y"]) + float(states["height"]) == pytest.approx(float(logits["y"]), abs=0.2)


def test_a_page_shows_text_escaped_and_loads_nothing() -> None:
    shown = page("a & b", [DRAWINGS["lines"], "1 < 2"])
    assert "<pre>1 &lt; 2</pre>" in shown
    assert not re.findall(r"(src|href)=", shown)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0, 10, [0, 2, 4, 6, 8, 10]), (0, 0.37, [0, 0.1, 0.2, 0.3, 0.4]), (-1, 1, [-1, -0.5, 0, 0.5, 1])],
)
def test_ticks_are_round_numbers_around_all_values(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high) == pytest.approx(expected)
