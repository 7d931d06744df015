from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.endpoint import Endpoints
from lj_image.catalog.resolve import resolve
from lj_image.config import Config
from lj_image.errors import ManifestError
from samples import tiny

Write = Callable[..., Catalog]
PLACES = tiny.IMAGE[tiny.IMAGE.index("  public:") : tiny.IMAGE.index("variants:")]
NEXT = 'release: "25.03"\nprevious: "25.02"\n'


def places(
    write: Write, config: Config, written: str, release: str = "25.02", variant: str = "open", **more: str
) -> Endpoints:
    catalog = write(image=tiny.IMAGE.replace(PLACES, written), **more)
    return resolve(catalog, config, release, variant=variant).endpoints


def test_a_place_of_which_nothing_is_said_is_as_ever(write_catalog: Write, config: Config) -> None:
    found = places(write_catalog, config, PLACES)
    public, north, south = found.all()
    assert (public.name, north.name, south.name) == ("public", "north", "south")
    assert (public.host, north.host) == ("public.example", "vpc.north.example")
    assert public.capabilities.profile == "unknown"
    assert (public.moving_tags, north.same_store_as) == ((), None)


def test_a_region_says_what_differs_from_the_others(write_catalog: Write, config: Config) -> None:
    written = """\
  public: {host: ghcr.io, moving_tags: [latest]}
  vpc:
    host: vpc.{region}.example
    profile: acr
    moving_tags: ["{release}"]
    regions:
      - north
      - {name: south, profile: harbor, moving_tags: [], host: "harbor.example:8443", same_store_as: public}
"""
    public, north, south = places(write_catalog, config, written).all()
    assert [item.capabilities.profile for item in (public, north, south)] == ["ghcr", "acr", "harbor"]
    assert [item.moving_tags for item in (public, north, south)] == [("latest",), ("25.02",), ()]
    assert [item.host for item in (public, north, south)] == ["ghcr.io", "vpc.north.example", "harbor.example:8443"]
    assert [item.same_store_as for item in (public, north, south)] == [None, None, "public"]


def test_moving_tags_are_rendered_for_release_and_variant(write_catalog: Write, config: Config) -> None:
    tags = '"{release}-{variant}", "tool{tool:major.minor}", {tag: latest, variants: [vendor]}, "tool{tool:public}"'
    written = PLACES.replace("public.example}", f"public.example, moving_tags: [{tags}]}}")
    assert places(write_catalog, config, written).public().moving_tags == ("25.02-open", "tool1.4", "tool1.4.2")
    assert "latest" in places(write_catalog, config, written, variant="vendor").public().moving_tags


def test_a_moving_tag_is_the_newest_releases(write_catalog: Write, config: Config) -> None:
    written = PLACES.replace("public.example}", 'public.example, moving_tags: [latest, "{release}"]}')
    old = places(write_catalog, config, written, r25_03=NEXT)
    new = places(write_catalog, config, written, "25.03", r25_03=NEXT)
    assert old.public().moving_tags == ("25.02",)
    assert new.public().moving_tags == ("latest", "25.03")


@pytest.mark.parametrize(
    "newer", [NEXT + "variants: {open: {unavailable: not yet}}\n", NEXT + "components: {unheard-of: 1.0.0}\n"]
)
def test_a_later_release_that_cannot_be_had_takes_no_tag(write_catalog: Write, config: Config, newer: str) -> None:
    written = PLACES.replace("public.example}", "public.example, moving_tags: [latest]}")
    assert places(write_catalog, config, written, r25_03=newer).public().moving_tags == ("latest",)


@pytest.mark.parametrize(
    ("written", "message", "hint", "line"),
    [
        (PLACES.replace("public.example}", "public.example, profile: habor}"), "no profile 'habor'", "harbor", 5),
        (PLACES.replace("south]", "{name: south, profile: gra}]"), "no profile 'gra'", "gar", 6),
        (PLACES.replace("public.example}", "public.example, moving_tags: ['{relase}']}"), "relase", "release", 5),
        (
            PLACES.replace("public.example}", "public.example, moving_tags: ['-x']}"),
            "'-x' cannot be a tag",
            "starts",
            5,
        ),
        (PLACES.replace("public.example}", "public.example, moving_tags: ['a:b']}"), "'a:b' cannot be", "letters", 5),
        (
            PLACES.replace("public.example}", "public.example, moving_tags: [{tag: x, variants: [opn]}]}"),
            "'opn', which is no variant",
            "open",
            5,
        ),
        (
            PLACES.replace("south]", "{name: south, same_store_as: nort}]"),
            "'nort', which is no other place",
            "north",
            6,
        ),
        (PLACES.replace("south]", "{name: south, same_store_as: south}]"), "'south', which is no other", "north", 6),
        (
            PLACES.replace(
                "north, south]", "{name: north, same_store_as: public}, {name: south, same_store_as: north}]"
            ),
            "said to be that of public",
            "name public",
            6,
        ),
        (
            PLACES.replace(
                "north, south]", "{name: north, same_store_as: south}, {name: south, same_store_as: north}]"
            ),
            "said to be that of north",
            "one of the two",
            6,
        ),
        (PLACES.replace("south]", "{name: south, regoin: x}]"), "unknown key 'regoin'", "", 6),
        (PLACES.replace("south]", "{profile: acr}]"), "has no 'name'", "name", 6),
        (PLACES.replace("south]", "{name: south, host: 'a.example/b'}]"), "is not written as it should", "match", 6),
    ],
)
def test_what_cannot_be_is_told_with_its_line(
    write_catalog: Write, config: Config, written: str, message: str, hint: str, line: int
) -> None:
    with pytest.raises(ManifestError) as caught:
        places(write_catalog, config, written)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")
    assert caught.value.location is not None
    assert caught.value.location.line == line


@pytest.mark.parametrize("example", [0, 1])
def test_the_examples_of_the_docs_are_as_they_say(write_catalog: Write, config: Config, example: int) -> None:
    page = (Path(__file__).parents[3] / "docs" / "endpoints.md").read_text()
    block = re.findall(r"```yaml\nendpoints:\n(.*?)```", page, re.DOTALL)[example]
    found = {place.name: place for place in places(write_catalog, config, block).all()}
    assert found["south"].same_store_as == (None, "public")[example]
    if example:
        assert found["east"].capabilities.profile == "our-harbor"
        assert (found["east"].host, found["east"].capabilities.zstd) == ("harbor.example:8443", False)
        assert found["north"].moving_tags == ("25.02-open-latest",)
        assert found["public"].moving_tags == ("latest",)
