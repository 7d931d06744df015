from __future__ import annotations

from collections.abc import Callable

import pytest

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.lint import lint
from samples.published import IMAGE, NEXT, told, written

Write = Callable[..., Catalog]


def fix(en: str) -> str:
    return f'{NEXT}fixes:\n  - en: "{en}"\n    zh: 中文\n'


def test_a_region_in_the_public_endpoint_is_found(write_catalog: Write) -> None:
    image = IMAGE.replace("{host: team-registry.cn-inland", '{host: "team-registry.{region}').replace(
        ".{region}.example.com}", '.{region}.example.com"}'
    )
    assert told(written(write_catalog, image=image)) == [("region-in-public-address", "image.yaml:6:18")]


def test_the_public_address_with_another_region_is_found(write_catalog: Write) -> None:
    (finding,) = lint(written(write_catalog, second=fix("pull team-registry.cn-coast.example.com/team/tiny:25.04")))
    assert finding.code == "region-in-public-address"
    assert finding.message.startswith("the public address has cn-coast in place of cn-inland")
    assert finding.hint.startswith("write team-registry.cn-inland.example.com;")
    assert str(finding.location).endswith("25.04.yaml:5:9")


@pytest.mark.parametrize("region", ["{region-id}", "<region>", "{{ region }}", "us-nowhere-1"])
def test_nothing_takes_the_place_of_the_public_region(write_catalog: Write, region: str) -> None:
    second = fix(f"pull team-registry.{region}.example.com/team/tiny:25.04")
    assert told(written(write_catalog, second=second)) == [("region-in-public-address", "25.04.yaml:5:9")]


def test_a_vpc_of_an_unknown_region_is_found_with_the_closest(write_catalog: Write) -> None:
    second = fix("pull lake-registry-vpc.cn-cost.example.com/team/tiny:25.04")
    (finding,) = lint(written(write_catalog, second=second))
    assert finding.code == "unknown-region"
    assert finding.hint.startswith("did you mean cn-coast")


def test_an_altered_image_name_is_found_with_the_closest(write_catalog: Write) -> None:
    second = fix("pull team-registry.cn-inland.example.com/team/tinny:25.04")
    (finding,) = lint(written(write_catalog, second=second))
    assert finding.message == "the address names the image team/tinny, which this catalog does not have"
    assert finding.code == "unknown-repository"
    assert "did you mean team/tiny?" in finding.hint


@pytest.mark.parametrize(
    "text",
    [
        "pull team-registry.cn-inland.example.com/team/tiny:25.04",
        "inside a VPC: lake-registry-vpc.{region-id}.example.com/team/{image:tag}",
        "inside a VPC: lake-registry-vpc.cn-coast.example.com/team/tiny:25.04",
        "the host team-registry.cn-inland.example.com, namespace team",
        "other-team-registry.cn-coast.example.com/team/tinny is another's",
        "mail team@cn-coast.example.com",
    ],
)
def test_right_addresses_and_those_of_others_are_fine(write_catalog: Write, text: str) -> None:
    assert told(written(write_catalog, second=fix(text))) == []


def test_an_address_in_the_notes_of_a_topic_is_found_with_its_column(write_catalog: Write) -> None:
    catalog = written(write_catalog)
    topic = catalog.root / "tiny" / "notes" / "assets.en.md.j2"
    topic.parent.mkdir()
    topic.write_text("Assets\n\n`docker pull lake-registry-vpc.cn-cost.example.com/team/{{ image }}`\n")
    assert told(catalog) == [("unknown-region", "assets.en.md.j2:3:32")]
