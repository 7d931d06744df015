from __future__ import annotations

from collections.abc import Callable

import pytest

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.lint import lint
from samples.published import FIRST, NEXT, told, written

Write = Callable[..., Catalog]


def heir(write: Write, more: str, first: str = FIRST) -> Catalog:
    return written(write, first=first, second=NEXT + more)


def highlight(en: str, zh: str = "中文", more: str = "") -> str:
    return f"highlights:\n  - en: {en}\n    zh: {zh}\n{more}"


def test_a_family_without_faults_has_no_findings(write_catalog: Write) -> None:
    assert told(heir(write_catalog, "")) == []


@pytest.mark.parametrize(
    ("en", "zh", "place"),
    [
        ("CUDA is upgraded to 12.8.1", "中文", "25.04.yaml:5:9"),
        ("CUDA", "CUDA升级至12.8.1", "25.04.yaml:6:9"),
        ("vLLM 0.8.4 is here", "中文", "25.04.yaml:5:9"),
    ],
)
def test_a_highlight_that_names_another_version_than_the_table_is_found(
    write_catalog: Write, en: str, zh: str, place: str
) -> None:
    assert told(heir(write_catalog, highlight(en, zh))) == [("text-against-table", place)]


def test_a_wrong_version_is_told_with_the_promised_one_and_the_way_out(write_catalog: Write) -> None:
    (finding,) = lint(heir(write_catalog, highlight("with cuda 12.8.1")))
    assert finding.lines() == (
        "the text says cuda 12.8.1, but 25.04 promises cuda 12.8.0 [text-against-table]",
        f"  at {finding.location}",
        "  write 12.8.0 here, or promise 12.8.1 under `components`",
    )


@pytest.mark.parametrize(
    "text",
    [
        "vLLM 0.8.5 with Ray 2.44",
        "vLLM from 0.8.2.dev0 to 0.8.5",
        "vLLM is upgraded to 0.8.5+cu128",
        "ACCL-N 2.23.4 is not in the table",
        "NumPy 1.26.4 is no component",
    ],
)
def test_a_highlight_that_agrees_with_the_table_is_fine(write_catalog: Write, text: str) -> None:
    assert told(heir(write_catalog, highlight(text))) == []


def test_a_version_of_any_variant_may_be_named(write_catalog: Write) -> None:
    more = "variants: {open: {components: {torch: 2.6.0}}}\n"
    first = FIRST + more
    assert (
        told(heir(write_catalog, more + highlight("PyTorch 2.6.0.7, PyTorch 2.6.0 in the open variant"), first)) == []
    )


def test_from_names_what_the_release_before_had(write_catalog: Write) -> None:
    (finding,) = lint(heir(write_catalog, highlight("vLLM from 0.7.2 to 0.8.5")))
    assert finding.message == "the text says that vLLM was 0.7.2, but 25.03 has vllm 0.8.2.dev0+g61c7a1b8"


def test_from_is_not_judged_where_the_release_before_is_not_in_the_catalog(write_catalog: Write) -> None:
    lost = NEXT.replace('previous: "25.03"', 'previous: "25.03.1"\ninherits: "25.03"')
    assert told(written(write_catalog, second=lost)) == []


def test_a_fix_may_tell_of_the_old_version_and_of_no_other(write_catalog: Write) -> None:
    fixes = "fixes: [{en: vLLM 0.8.2 crashed, zh: vLLM 0.8.1 崩溃}]\n"
    column = fixes.index("vLLM 0.8.1") + 1
    assert told(heir(write_catalog, fixes)) == [("text-against-table", f"25.04.yaml:4:{column}")]


def test_a_reason_for_a_downgrade_may_tell_of_both_versions_and_of_no_other(write_catalog: Write) -> None:
    ray = "  ray: {version: 2.43.0, downgrade: {en: vLLM 0.8.5 refuses Ray 2.44, zh: vLLM 0.8.4 不支持 Ray 2.44}}\n"
    text = NEXT.replace("components: {vllm: 0.8.5+cu128}\n", f"components:\n  vllm: 0.8.5+cu128\n{ray}")
    column = ray.index("vLLM 0.8.4") + 1
    assert told(written(write_catalog, second=text)) == [("text-against-table", f"25.04.yaml:5:{column}")]


@pytest.mark.parametrize(
    "text",
    ["Transformer Engine is upgraded to 2.1", "TransformerEngine 已升级", "upgrades vLLM to 0.8.5 and Ray to 2.44.0"],
)
def test_an_upgrade_to_what_was_there_before_is_found(write_catalog: Write, text: str) -> None:
    (finding,) = lint(heir(write_catalog, highlight(text)))
    assert finding.code == "upgrade-without-change"
    assert "in 25.03 already" in finding.message


def test_an_upgrade_of_one_variant_is_an_upgrade(write_catalog: Write) -> None:
    first = FIRST + "variants: {open: {components: {torch: 2.5.1}}}\n"
    more = "variants: {open: {components: {torch: 2.6.0}}}\n" + highlight("PyTorch is upgraded to 2.6.0")
    assert told(heir(write_catalog, more, first)) == []


def test_a_component_of_a_highlight_that_did_not_change_is_found(write_catalog: Write) -> None:
    more = highlight("News", more="    components: [vllm, Torch]\n")
    (finding,) = lint(heir(write_catalog, more))
    assert (finding.code, str(finding.location).rpartition("/")[2]) == ("highlight-without-change", "25.04.yaml:7:24")
    assert finding.message == "Torch stands under `components` of a highlight, but nothing about it changed since 25.03"


@pytest.mark.parametrize(
    "promise", ["accl-n: 2.23.4.12", "torch: {version: 2.6.0.7, features: [fast]}", "cuda: {version: 12.8.1}"]
)
def test_what_is_new_newer_or_can_do_more_has_changed(write_catalog: Write, promise: str) -> None:
    text = NEXT.replace("{vllm: 0.8.5+cu128}", f"\n  {promise}")
    name = promise.partition(":")[0]
    more = highlight("News", more=f"    components: [{name}]\n")
    assert told(written(write_catalog, second=text + more)) == []


def test_in_a_first_release_everything_promised_is_news(write_catalog: Write) -> None:
    first = FIRST + highlight("News", more="    components: [vllm, accl-n]\n")
    assert told(written(write_catalog, first=first)) == [("highlight-without-change", "25.03.yaml:12:24")]
