"""Words of uv 0.13, as it said them, and what becomes of them."""

from __future__ import annotations

import pytest

from lj_image.catalog.release import Release
from lj_image.lock.explain import closest_versions, explain
from lj_image.lock.project import demand_of
from unit.lock.releases import pip, release

ASKED = release(
    vllm=pip(("vllm", "0.7.2")),
    ray=pip(("ray", "2.42.1")),
    far=pip(("far", "1.0")),
    base={"torch": "2.4", "pip": "23.0.1"},
)


def explained(words: str, asked: Release = ASKED) -> str:
    return explain(words, demand_of(asked), asked.base.facts, lambda pin: ("2.42.0", "2.43.0", "1.0")).message


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            """Because only torch<2.5 is available and vllm==0.7.2 depends on torch==2.5.1, we can conclude that
            vllm==0.7.2 cannot be used. And because release depends on vllm==0.7.2, we can conclude that your
            requirements are unsatisfiable.""",
            "component vllm needs torch==2.5.1, but the base base has torch 2.4, which is not replaced",
        ),
        (
            """Because all versions of m1 depend on m2 and m2>=1.0 depends on torch>=2.5, we can conclude that
            torch<2.5, all versions of m1, m2>0.1 are incompatible. And because all versions of far depend on m1
            and release depends on ray==2.42.1 and far==1.0, we can conclude that your
            requirements are unsatisfiable.""",
            "component far (through m2) needs torch>=2.5, but the base base has torch 2.4, which is not replaced",
        ),
        (
            """Because there is no version of ray==2.42.1 and release depends on ray==2.42.1, we can conclude that your
            requirements are unsatisfiable.""",
            "component ray: the index 'pypi' has no ray==2.42.1",
        ),
        (
            """Because vllm was not found in the package registry and release depends on vllm==0.7.2, we can conclude
            that your requirements are unsatisfiable.""",
            "component vllm: the index 'pypi' has no vllm==0.7.2",
        ),
        (
            """Because nowhere was not found in the package registry and all versions of vllm depend on nowhere, we can
            conclude that all versions of vllm cannot be used. And because release depends on vllm==0.7.2, we can
            conclude that your requirements are unsatisfiable.""",
            "component vllm needs nowhere, which is on no index",
        ),
        (
            """Because inner==1.0 requires Python >=3.12,<4 and only inner==1.0 is available, we can conclude that all
            versions of inner cannot be used. And because all versions of far depend on inner and release depends
            on far==1.0, we can conclude that your requirements are unsatisfiable.""",
            "component far (through inner) needs Python >=3.12,<4, but the base base has Python 3.11",
        ),
        (
            """Because all versions of ray depend on helper>=2 and all versions of vllm depend on helper<2, we can
            conclude that all versions of ray and all versions of vllm are incompatible. And because release
            depends on ray==2.42.1 and vllm==0.7.2, we can conclude that your requirements are unsatisfiable.""",
            "the components cannot be installed together: ray (ray==2.42.1) and vllm (vllm==0.7.2)",
        ),
        (
            """Because all versions of m depend on helper<2 and all versions of far depend on helper>=2, we can conclude
            that all versions of m and all versions of far are incompatible. And because all versions of far depend
            on m and release depends on far==1.0, we can conclude that your requirements are unsatisfiable.""",
            "component far: the requirements of far==1.0 contradict each other",
        ),
        (
            """error: Failed to fetch: `http://host/simple/ray/`
            cause: error sending request""",
            "an index cannot be reached",
        ),
        (
            """error: something new""",
            "no set of distributions satisfies the release",
        ),
    ],
)
def test_words_of_uv_become_words_of_the_manifest(words: str, message: str) -> None:
    assert explained(words) == message


def test_words_of_uv_are_kept_below() -> None:
    hint = explain("first\nsecond", demand_of(ASKED), ASKED.base.facts, lambda pin: ()).hint
    assert hint is not None
    assert hint.endswith("uv says:\nfirst\nsecond")


def test_closest_versions_share_the_most_and_are_newest_first() -> None:
    offered = ["0.7.1", "0.7.3", "0.8.0", "0.6.6", "1.0", "0.7.3", "nonsense", "0.7.10"]
    assert closest_versions("0.7.2", offered) == ("0.7.10", "0.7.3", "0.7.1", "0.8.0")
