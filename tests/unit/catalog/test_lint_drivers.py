from __future__ import annotations

from collections.abc import Callable

import pytest

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.lint import lint
from samples.published import FIRST, NEXT, told, written

Write = Callable[..., Catalog]
DRIVER = 'driver: {requires: ">=570", data_centre: {R470: "470.57", R535: "535.86"}, refused: [R530, R555]}\n'


def test_drivers_that_agree_are_fine(write_catalog: Write) -> None:
    second = NEXT + 'driver: ">=575"\n'
    assert told(written(write_catalog, first=FIRST + DRIVER, second=second)) == []


def test_a_branch_both_allowed_and_refused_is_found(write_catalog: Write) -> None:
    driver = DRIVER.replace("[R530, R555]", "[R530, R535]")
    (finding,) = lint(written(write_catalog, first=FIRST + driver))
    assert finding.code == "driver-allowed-and-refused"
    assert finding.message == "R535 is refused, but data-centre GPUs may use it from 535.86 on"
    assert str(finding.location).endswith(f"25.03.yaml:9:{driver.index('R535]') + 1}")


def test_a_version_of_another_branch_is_found(write_catalog: Write) -> None:
    driver = DRIVER.replace("535.86", "525.85")
    (finding,) = lint(written(write_catalog, first=FIRST + driver))
    assert (finding.code, finding.message) == ("driver-of-other-branch", "525.85 is no driver of R535")
    assert "name it R525" in finding.hint


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [("R555", "R570", "refused"), ("R555", "R580", "refused"), ('R535: "535.86"', 'R575: "575.51"', "data_centre")],
)
def test_a_branch_that_is_new_enough_anyway_is_found(write_catalog: Write, old: str, new: str, key: str) -> None:
    (finding,) = lint(written(write_catalog, first=FIRST + DRIVER.replace(old, new)))
    assert finding.code == "driver-against-required"
    assert f"under `{key}`, but the release runs with every driver >=570" in finding.message


def test_an_inherited_branch_against_a_lower_requirement_is_found_where_that_is(write_catalog: Write) -> None:
    second = NEXT + 'driver: ">=550"\n'
    assert told(written(write_catalog, first=FIRST + DRIVER, second=second)) == [
        ("driver-against-required", "25.04.yaml:4:9")
    ]
