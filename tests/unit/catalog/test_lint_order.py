from __future__ import annotations

from collections.abc import Callable

import pytest

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.lint import lint
from samples.published import FIRST, NEXT, told, written

Write = Callable[..., Catalog]
LOWER_RAY = NEXT.replace("vllm: 0.8.5+cu128", "ray: 2.43.0")
EXPLAINED = NEXT.replace("vllm: 0.8.5+cu128", "ray: {version: 2.43.0, downgrade: {en: why, zh: 原因}}")


def test_a_version_that_went_down_without_a_reason_is_found(write_catalog: Write) -> None:
    (finding,) = lint(written(write_catalog, second=LOWER_RAY))
    assert (finding.code, finding.message) == ("downgrade-without-reason", "ray 2.43.0 is lower than 2.44.0 of 25.03")
    assert str(finding.location).endswith("25.04.yaml:3:14")
    assert "downgrade: …" in finding.hint


def test_a_downgrade_with_a_reason_is_fine_and_its_heirs_need_none(write_catalog: Write) -> None:
    heir = 'release: "25.05"\nprevious: "25.04"\n'
    assert told(written(write_catalog, second=EXPLAINED, r25_05=heir)) == []


def test_a_second_downgrade_needs_a_reason_of_its_own(write_catalog: Write) -> None:
    heir = 'release: "25.05"\nprevious: "25.04"\ncomponents: {ray: 2.42.1}\n'
    catalog = written(write_catalog, second=EXPLAINED, r25_05=heir)
    assert told(catalog) == [("downgrade-without-reason", "25.05.yaml:3:14")]


def test_what_goes_down_by_inheriting_from_an_older_release_is_found(write_catalog: Write) -> None:
    heir = 'release: "25.05"\nprevious: "25.04"\ninherits: "25.03"\n'
    (finding,) = lint(written(write_catalog, r25_05=heir))
    assert finding.message == "vllm 0.8.2.dev0+g61c7a1b8 is lower than 0.8.5+cu128 of 25.04"
    assert str(finding.location).endswith("25.05.yaml:3:11")


def test_a_downgrade_in_one_variant_is_found(write_catalog: Write) -> None:
    first = FIRST + "variants: {open: {components: {torch: 2.6.0}}}\n"
    second = NEXT + "variants: {open: {components: {torch: 2.5.1}}}\n"
    (finding,) = lint(written(write_catalog, first=first, second=second))
    assert finding.message == "torch 2.5.1 is lower than 2.6.0 of 25.03 in the variant 'open'"


def test_a_variant_that_could_not_be_had_before_did_not_go_down(write_catalog: Write) -> None:
    first = FIRST + "variants: {open: {unavailable: {en: why, zh: 原因}}}\n"
    second = NEXT + "variants: {open: {components: {torch: 2.5.1}}}\n"
    assert told(written(write_catalog, first=first, second=second)) == []


def test_a_rebuilt_version_did_not_go_down(write_catalog: Write) -> None:
    first = FIRST.replace('"2.1"', "2.3.0+5de3e148")
    second = NEXT.replace("vllm: 0.8.5+cu128", "transformer-engine: 2.3.0+3cd6870c")
    assert told(written(write_catalog, first=first, second=second)) == []


@pytest.mark.parametrize(
    ("name", "version", "than"),
    [("ray", "2.44.0", "2.44.0 of 25.03"), ("ray", "2.45.0", "2.44.0 of 25.03"), ("accl-n", "2.23.4", "anything")],
)
def test_a_reason_where_nothing_went_down_is_found(write_catalog: Write, name: str, version: str, than: str) -> None:
    second = EXPLAINED.replace("ray:", f"{name}:").replace("2.43.0", version)
    (finding,) = lint(written(write_catalog, second=second))
    assert finding.code == "reason-without-downgrade"
    assert f"is not lower than {than}" in finding.message
    assert str(finding.location).endswith("25.04.yaml:3:14")


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ('release: "25.04"\nprevious: "25.05"\ninherits: "25.03"\n', ("previous-not-older", "25.04.yaml:2:11")),
        ('release: "25.04"\nprevious: "25.04"\ninherits: "25.03"\n', ("previous-not-older", "25.04.yaml:2:11")),
        ('release: "25.04"\nprevious: "25.02"\ninherits: "25.03"\n', ("inherits-not-older", "25.04.yaml:3:11")),
        ('release: "25.04"\nprevious: "25.04"\n', ("inheritance", "25.04.yaml:2:11")),
        ('release: "25.04"\nprevious: "24.12"\n', ("inheritance", "25.04.yaml:2:11")),
    ],
)
def test_releases_out_of_order_are_found(write_catalog: Write, second: str, expected: tuple[str, str]) -> None:
    assert told(written(write_catalog, second=second)) == [expected]


@pytest.mark.parametrize(
    "second",
    [
        'release: "25.04"\nprevious: "25.03.1"\ninherits: "25.03"\n',  # the repaired one has no file
        'release: "25.04"\ninherits: "25.02"\n',
        'release: "25.04"\nprevious: "25.03"\ninherits: "25.02"\n',
    ],
)
def test_releases_in_order_are_fine(write_catalog: Write, second: str) -> None:
    first = FIRST.replace("0.8.2.dev0+g61c7a1b8", "0.8.2.dev0")
    with_all = second + "components: {vllm: 0.8.5}\n"
    assert told(written(write_catalog, first=first, second=with_all)) == []


def test_a_circle_of_releases_is_told_once_and_at_the_culprit(write_catalog: Write) -> None:
    first = FIRST.replace('release: "25.03"\n', 'release: "25.03"\nprevious: "25.04"\n')
    assert ("previous-not-older", "25.03.yaml:2:11") in told(written(write_catalog, first=first))


def test_two_files_with_one_release_are_found(write_catalog: Write) -> None:
    catalog = written(write_catalog)
    (catalog.root / "tiny" / "releases" / "25.4.yaml").write_text(NEXT)
    assert told(catalog) == [("invalid-file", "25.4.yaml:1:10")]
