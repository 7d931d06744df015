"""What lint says of the list of a family's texts for its notes."""

from __future__ import annotations

from collections.abc import Callable

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.lint import lint
from samples.tiny import IMAGE

WITH_NOTES = IMAGE.replace("namespace: team\n", "namespace: team\nnotes: {product: The Product, scenario: Training}\n")
TOPIC = "  - {topic: speed, section: enhancements, title: Speed}\n"


def found(catalog: Catalog, topics: str, *texts: str) -> list[str]:
    folder = catalog.root / "tiny/notes"
    folder.mkdir()
    (folder / "topics.yaml").write_text(topics)
    for name in texts:
        (folder / name).write_text("fast\n")
    return [f"{item.code} {item.message}" for item in lint(catalog) if "topics.yaml" in str(item.location)]


def test_a_sound_list_is_no_finding(write_catalog: Callable[..., Catalog]) -> None:
    assert found(write_catalog(image=WITH_NOTES), f"topics:\n{TOPIC}", "speed.en.md.j2") == []


def test_all_faults_of_the_list_are_found_at_once(write_catalog: Callable[..., Catalog]) -> None:
    topics = "example_regions: [nort]\ntopics:\n" + TOPIC.replace("section:", "variants: [vendr], section:")
    assert found(write_catalog(image=WITH_NOTES), topics) == [
        "invalid-file example_regions: unknown name 'nort'",
        "invalid-file topic 'speed' has no text in 'en'",
        "invalid-file variants: unknown name 'vendr'",
    ]


def test_a_list_that_does_not_fit_its_schema_is_found(write_catalog: Callable[..., Catalog]) -> None:
    assert found(write_catalog(image=WITH_NOTES), "topic: []\n") == ["invalid-file unknown key 'topic'"]
