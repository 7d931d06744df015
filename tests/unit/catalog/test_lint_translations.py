from __future__ import annotations

from collections.abc import Callable

import pytest

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.lint import lint
from samples.published import FIRST, IMAGE, NEXT, told, written

Write = Callable[..., Catalog]
OPEN_CUDA = "cuda: {title: CUDA, sources: {vendor: {kind: base}, open: {kind: base}}}"


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ("highlights: [News]\n", "25.04.yaml:4:14"),
        ("highlights: [{en: News}]\n", "25.04.yaml:4:14"),
        ('highlights: [{en: News, zh: ""}]\n', "25.04.yaml:4:14"),
        ("fixes: [Repaired]\n", "25.04.yaml:4:9"),
        ("variants: {open: {unavailable: nobody has it}}\n", "25.04.yaml:4:32"),
        ("variants: {open: {components: {cuda: {version: 12.8.0, stands_in_for: that}}}}\n", "25.04.yaml:4:71"),
    ],
)
def test_a_text_of_a_release_without_a_translation_is_found(write_catalog: Write, more: str, place: str) -> None:
    assert told(written(write_catalog, second=NEXT + more)) == [("missing-translation", place)]


def test_a_reason_for_a_downgrade_is_translated_too(write_catalog: Write) -> None:
    second = NEXT.replace("vllm: 0.8.5+cu128", "ray: {version: 2.43.0, downgrade: why}")
    (finding,) = lint(written(write_catalog, second=second))
    assert finding.message == "components.ray.downgrade has no Chinese, in which tiny is published too"
    assert "zh: …" in finding.hint


@pytest.mark.parametrize(
    "entry",
    [
        "cuda: {title: CUDA, sources: {vendor: {kind: base}, open: {kind: pip, stands_in_for: that}}}",
        "cuda: {title: CUDA, sources: {vendor: {kind: base}}, left_out: {open: nobody has it}}",
    ],
)
def test_a_text_of_the_family_without_a_translation_is_found(write_catalog: Write, entry: str) -> None:
    ((code, place),) = told(written(write_catalog, image=IMAGE.replace(OPEN_CUDA, entry)))
    assert (code, place.partition(":")[0]) == ("missing-translation", "image.yaml")


@pytest.mark.parametrize("languages", [", languages: [en, zh]", ""])
def test_translated_texts_and_families_in_one_language_are_fine(write_catalog: Write, languages: str) -> None:
    image = IMAGE.replace(", languages: [en, zh]", languages)
    more = "highlights: [{en: News, zh: 新闻}]\nfixes: [{en: Repaired, zh: 修复}]\n"
    assert told(written(write_catalog, image=image, second=NEXT + (more if languages else "fixes: [Repaired]\n"))) == []


def test_a_family_without_notes_needs_no_translation(write_catalog: Write) -> None:
    image = "\n".join(line for line in IMAGE.splitlines() if not line.startswith("notes:"))
    assert told(written(write_catalog, image=image, first=FIRST + "fixes: [Repaired]\n")) == []
