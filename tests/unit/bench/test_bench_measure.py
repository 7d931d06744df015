"""Ratios, marks and what a table's row says."""

from __future__ import annotations

import sys

from bench.__main__ import line
from bench.measure import in_turn, ours_by, run, times_faster


def test_times_faster_is_the_peers_median_by_ours() -> None:
    figure = times_faster("oci_vs_pip", "pip", {"pip": [90, 60, 1000], "ours": [3, 2, 1]}, 30, "")
    assert (figure.ratio, figure.sides) == (45, {"ours": 2, "pip": 90})
    assert figure.is_met
    assert not times_faster("oci_vs_pip", "pip", {"pip": [58], "ours": [2]}, 30, "").is_met


def test_a_part_of_a_side_is_ours_by_that_side() -> None:
    figure = ours_by("oci_vs_limit", "limit", {"ours": [5], "limit": [4], "pip": [1]}, 1.25, "")
    assert (figure.ratio, figure.sides, figure.is_met) == (1.25, {"ours": 5, "limit": 4}, True)
    assert not ours_by("oci_vs_limit", "limit", {"ours": [6], "limit": [4]}, 1.25, "").is_met


def test_a_row_names_sides_and_mark_and_says_what_is_missed() -> None:
    row = line(times_faster("oci_vs_uv", "uv", {"uv": [22], "ours": [2]}, 12, "62 wheels"))
    assert row.split() == ["oci_vs_uv", "11", "≥", "12", "ours", "2.000,", "uv", "22.000", "MISSED", "(62", "wheels)"]


def test_a_figure_for_machines_has_name_ratio_and_sides() -> None:
    figure = ours_by("rebuild_vs_uv", "uv", {"ours": [1], "uv": [100]}, 0.02, "").to_json()
    assert (figure["name"], figure["ratio"], figure["sides"]) == ("rebuild_vs_uv", 0.01, {"ours": 1, "uv": 100})


def test_sides_run_in_turn() -> None:
    order: list[str] = []

    def side(name: str) -> float:
        order.append(name)
        return len(order)

    assert in_turn({"a": lambda: side("a"), "b": lambda: side("b")}, 2) == {"a": [1, 3], "b": [2, 4]}
    assert order == ["a", "b", "a", "b"]


def test_peak_memory_is_of_the_largest_process_below_a_command() -> None:
    child = "x = bytearray(150 * 1024 ** 2)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], check=True)"
    assert 150 < run([sys.executable, "-c", parent]).peak_mib < 300
