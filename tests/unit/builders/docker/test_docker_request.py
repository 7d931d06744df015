from __future__ import annotations

import pytest

from lj_image.builders.docker.request import BuildRequest
from lj_image.context import BuildContext

CONTEXT = BuildContext("FROM x")


def test_what_is_not_asked_for_is_left_out() -> None:
    assert list(BuildRequest(CONTEXT).parameters()) == []


def test_everything_that_can_be_asked_for() -> None:
    request = BuildRequest(
        CONTEXT,
        tags=("a:1", "b:2"),
        labels={"l": "ü", "k": "1"},
        build_args={"A": "b"},
        network="none",
        platform="linux/arm64",
        no_cache=True,
        target="final",
    )
    assert list(request.parameters()) == [
        ("t", "a:1"),
        ("t", "b:2"),
        ("labels", '{"k": "1", "l": "\\u00fc"}'),
        ("buildargs", '{"A": "b"}'),
        ("networkmode", "none"),
        ("platform", "linux/arm64"),
        ("target", "final"),
        ("nocache", "1"),
    ]


@pytest.mark.parametrize(
    ("tags", "name"),
    [
        ((), ""),
        (("reg:5000/a/b:25.02", "x"), "reg:5000/a/b"),
        (("reg:5000/a/b",), "reg:5000/a/b"),
        (("a",), "a"),
    ],
)
def test_builds_of_one_image_share_a_name(tags: tuple[str, ...], name: str) -> None:
    assert BuildRequest(CONTEXT, tags=tags).name == name
