from __future__ import annotations

from collections.abc import Callable

import pytest

from lj_image.catalog.catalog import Catalog
from samples.published import IMAGE, told, written

Write = Callable[..., Catalog]
PUBLIC = "team-registry.cn-inland.example.com}"


def with_public(more: str) -> str:
    return IMAGE.replace(PUBLIC, PUBLIC.replace("}", f", {more}}}"))


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (with_public("profile: habor"), [("unknown-profile", "image.yaml:6:64")]),
        (
            IMAGE.replace("variants:\n", "  profiles:\n    ours: {like: arc}\nvariants:\n", 1),
            [("unknown-profile", "image.yaml:9:18")],
        ),
        (
            IMAGE.replace("variants:\n", "  profiles:\n    acr: {zstd: false}\nvariants:\n", 1),
            [("unknown-profile", "image.yaml:9:5")],
        ),
        (IMAGE.replace("cn-coast,", "cn-inland,"), [("region-twice", "image.yaml:7:78")]),
        (IMAGE.replace("cn-coast,", "public,"), [("region-twice", "image.yaml:7:78")]),
        (
            IMAGE.replace("cn-coast,", "{name: cn-coast, same_store_as: pulbic},"),
            [("unknown-place", "image.yaml:7:110")],
        ),
        (with_public('moving_tags: ["{release}-open"]'), [("moving-tag-is-own", "image.yaml:6:69")]),
        (with_public("moving_tags: [latest]"), [("moving-tag-shared", "image.yaml:6:69")]),
        (with_public("moving_tags: [{tag: latest, variants: [open]}]"), []),
        (with_public('moving_tags: ["{variant}"]'), []),
        (
            with_public("profile: fixed, moving_tags: [{tag: latest, variants: [open]}]").replace(
                "variants:\n  vendor", "  profiles: {fixed: {immutable_tags: true}}\nvariants:\n  vendor"
            ),
            [("moving-tag-cannot-move", "image.yaml:6:84")],
        ),
    ],
)
def test_a_place_that_cannot_be_as_written_is_found(
    write_catalog: Write, image: str, expected: list[tuple[str, str]]
) -> None:
    assert told(written(write_catalog, image=image)) == expected


def test_a_list_that_regions_share_is_judged_once(write_catalog: Write) -> None:
    image = IMAGE.replace('example.com", regions', 'example.com", moving_tags: [latest], regions')
    assert [code for code, _ in told(written(write_catalog, image=image))] == ["moving-tag-shared"]


def test_a_template_that_cannot_be_filled_is_found(write_catalog: Write) -> None:
    found = told(written(write_catalog, image=with_public('moving_tags: ["{relase}"]')))
    assert {code for code, _ in found} == {"resolution"}
