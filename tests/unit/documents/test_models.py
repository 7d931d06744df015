from __future__ import annotations

import pytest

from lj_image.catalog.schema import ImageFile, ReleaseFile
from lj_image.documents.models import validate
from lj_image.documents.nodes import parse_document
from lj_image.errors import ManifestError


def findings(text: str, model: type = ReleaseFile) -> list[tuple[str, str, str | None]]:
    with pytest.raises(ManifestError) as caught:
        validate(parse_document(text, "f.yaml"), model)
    return [(str(item.location), item.message, item.hint) for item in (caught.value, *caught.value.others)]


def test_an_unquoted_release_says_what_it_was_read_as_and_how_to_write_it() -> None:
    assert findings("release: 25.10\n") == [
        ("f.yaml:1:10", "release: 25.10 is read as the number 25.1", 'quote it: "25.10"')
    ]


def test_an_unquoted_version_is_refused_in_short_and_long_form() -> None:
    text = 'release: "25.02"\ncomponents:\n  cuda: 12.8\n  ray: {version: 2.30}\n'
    assert findings(text) == [
        ("f.yaml:3:9", "components.cuda: 12.8 is read as the number 12.8", 'quote it: "12.8"'),
        ("f.yaml:4:18", "components.ray.version: 2.30 is read as the number 2.3", 'quote it: "2.30"'),
    ]


def test_an_unknown_key_names_the_closest_known_ones() -> None:
    assert findings('release: "25.02"\ncompnents: {}\n') == [
        ("f.yaml:2:1", "unknown key 'compnents'", "did you mean components?")
    ]


def test_an_unknown_key_in_the_long_form_of_a_component_is_found_where_it_stands() -> None:
    text = 'release: "25.02"\ncomponents:\n  x: {version: "1.0", fetures: []}\n'
    [(place, message, hint)] = findings(text)
    assert (place, message) == ("f.yaml:3:23", "unknown key 'fetures' in components.x")
    assert hint is not None
    assert hint.startswith("did you mean features")


def test_a_key_without_a_value_asks_for_one() -> None:
    assert findings('release: "25.02"\ncomponents:\n  ray:\n') == [
        ("f.yaml:3:7", "components.ray has no value", 'write one: `ray: "…"`')
    ]


def test_all_findings_come_at_once_in_the_order_of_lines() -> None:
    places = [place for place, _, _ in findings('release: "2502"\ncomponents: []\nfixs: []\n')]
    assert places == ["f.yaml:1:10", "f.yaml:2:13", "f.yaml:3:1"]


def test_a_mistyped_kind_of_source_names_the_closest_kind() -> None:
    text = "image: x\ntitle: t\ncomponents:\n  a:\n    title: A\n    sources:\n      open: {kind: pipp}\n"
    found = {place: (message, hint) for place, message, hint in findings(text, ImageFile)}
    assert found["f.yaml:7:13"] == ("components.a.sources.open: unknown kind 'pipp'", "did you mean pip?")
