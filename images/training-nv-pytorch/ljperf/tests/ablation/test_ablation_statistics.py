"""Intervals against printed tables and samples worked out by hand."""

from __future__ import annotations

import math

import pytest
from ljperf.ablation.statistics import Estimate, gain_of, mean_of, t_cdf, t_quantile


@pytest.mark.parametrize(
    ("probability", "degrees", "printed"),
    # Any printed table of Student's t; degrees 1 and 2 also have closed forms.
    [
        (0.975, 1, 12.706),
        (0.975, 2, 4.303),
        (0.975, 3, 3.182),
        (0.975, 4, 2.776),
        (0.975, 9, 2.262),
        (0.975, 10, 2.228),
        (0.95, 5, 2.015),
        (0.995, 7, 3.499),
        (0.975, 30, 2.042),
        (0.975, 120, 1.980),
    ],
)
def test_quantiles_are_those_of_printed_tables(probability: float, degrees: int, printed: float) -> None:
    assert t_quantile(probability, degrees) == pytest.approx(printed, abs=6e-4)


def test_one_degree_of_freedom_is_the_cauchy_distribution() -> None:
    assert t_cdf(1.0, 1) == pytest.approx(0.5 + math.atan(1.0) / math.pi)


def test_two_degrees_of_freedom_have_a_closed_form() -> None:
    assert t_cdf(1.5, 2) == pytest.approx(0.5 + 1.5 / (2 * math.sqrt(2 + 1.5**2)))


def test_a_probability_below_a_half_is_refused() -> None:
    with pytest.raises(ValueError, match=r"from 0\.5"):
        t_quantile(0.1, 3)


def test_the_mean_of_five_has_the_interval_of_the_textbook() -> None:
    # mean 3, standard deviation sqrt(2.5), half width 2.776 * sqrt(0.5)
    estimate = mean_of([1.0, 2.0, 3.0, 4.0, 5.0])
    assert estimate.value == 3.0
    assert (estimate.low, estimate.high) == (pytest.approx(1.0367, abs=1e-3), pytest.approx(4.9633, abs=1e-3))


def test_one_repeat_has_a_value_and_no_interval() -> None:
    assert mean_of([7.0]) == Estimate(7.0)
    assert gain_of([100.0], [120.0]).low is None
    assert not mean_of([7.0]).excludes(0.0)


def test_a_gain_is_paired_so_that_a_drift_of_the_machine_does_not_widen_it() -> None:
    before = [100.0, 80.0, 60.0, 40.0]
    gain = gain_of(before, [value * 1.25 for value in before])
    assert gain.value == pytest.approx(0.25)
    assert (gain.low, gain.high) == (pytest.approx(0.25), pytest.approx(0.25))
    assert gain.excludes(0.0)


def test_a_gain_and_the_loss_that_undoes_it_cancel() -> None:
    gain = gain_of([100.0, 100.0], [200.0, 50.0])
    assert gain.value == pytest.approx(0.0)
    assert not gain.excludes(0.0)


def test_speeds_that_are_not_paired_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        gain_of([1.0, 2.0], [1.0])
