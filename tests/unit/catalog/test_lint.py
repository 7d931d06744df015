from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.lint import lint
from samples.tiny import IMAGE, RELEASE

ROOT = Path(__file__).parents[3]


def test_the_catalog_of_this_project_is_clean() -> None:
    assert lint(Catalog(ROOT / "images")) == ()


def test_every_finding_of_every_file_comes_at_once(write_catalog: Callable[..., Catalog]) -> None:
    catalog = write_catalog(
        r25_02=RELEASE.replace("tool: 1.4.2+ali", "tol: 1.4.2+ali"),
        r25_03='release: "25.03"\ncomponents: {kit: 12.8}\n',
    )
    assert [finding.message for finding in lint(catalog)] == [
        "unknown component 'tol'",
        "components.kit: 12.8 is read as the number 12.8",
    ]


def test_a_spelling_that_means_two_components_is_found(write_catalog: Callable[..., Catalog]) -> None:
    image = IMAGE.replace("aliases: [Tool, the_tool]", "aliases: [kit]")
    assert [item.message for item in lint(write_catalog(image=image))] == ["'kit' means kit and tool"]


def test_a_source_for_an_unknown_variant_is_found(write_catalog: Callable[..., Catalog]) -> None:
    image = IMAGE.replace("      open: {kind: base, probe: python}", "      opn: {kind: base, probe: python}")
    messages = [item.message for item in lint(write_catalog(image=image))]
    assert "components.runtime has a source for 'opn', which is no variant of tiny" in messages
