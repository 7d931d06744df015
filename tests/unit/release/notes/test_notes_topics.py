"""Texts by topic: which notes they belong to, and what is wrong with a file that lists them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lj_image.catalog.catalog import Catalog
from lj_image.catalog.release import Release
from lj_image.config import Config
from lj_image.errors import ManifestError
from lj_image.release.notes import NoteFacts, note_facts, render_notes
from lj_image.templating import Templates

Tiny = Callable[..., tuple[Catalog, Release]]
TOPIC = "topics:\n  - {topic: speed, section: enhancements, title: {en: Speed, zh: 速度}}\n"


@pytest.fixture
def with_topics(tiny: Tiny, config: Config) -> Callable[..., NoteFacts]:
    """Return a function from `topics.yaml` and texts, by file name, to the facts of the small family."""

    def make(topics: str, texts: dict[str, str] | None = None, **arguments: object) -> NoteFacts:
        catalog, release = tiny(**arguments)
        folder = catalog.root / "tiny/notes"
        folder.mkdir(exist_ok=True)
        (folder / "topics.yaml").write_text(topics)
        for name, text in (texts or {"speed.en.md.j2": "fast\n", "speed.zh.md.j2": "快\n"}).items():
            (folder / name).write_text(text)
        return note_facts(catalog, config, release, None)

    return make


@pytest.mark.parametrize(
    ("limits", "releases"),
    [
        ("", ["25.02", "25.03", "25.04"]),
        ('from: "25.03"', ["25.03", "25.04"]),
        ('until: "25.03"', ["25.02", "25.03"]),
        ('from: "25.03", until: "25.03"', ["25.03"]),
        ('until: "25.01"', []),
    ],
)
def test_a_topic_belongs_to_the_releases_of_its_range(
    with_topics: Callable[..., NoteFacts], limits: str, releases: list[str]
) -> None:
    topics = TOPIC.replace("section:", f"{limits}, section:" if limits else "section:")
    later = {"r25_03": 'release: "25.03"\nprevious: "25.02"\n', "r25_04": 'release: "25.04"\nprevious: "25.03"\n'}
    names = ("25.02", "25.03", "25.04")
    assert [name for name in names if with_topics(topics, release=name, **later).topics] == releases


def test_a_repaired_release_belongs_to_its_month(with_topics: Callable[..., NoteFacts]) -> None:
    topics = TOPIC.replace("section:", 'until: "25.02", section:')
    repaired = 'release: "25.02.1"\nprevious: "25.02"\n'
    assert with_topics(topics, release="25.02.1", **{"r25_02.1": repaired}).topics


@pytest.mark.parametrize(("variant", "told"), [("vendor", True), ("open", False)])
def test_a_topic_belongs_to_its_variants(with_topics: Callable[..., NoteFacts], variant: str, told: bool) -> None:
    topics = TOPIC.replace("section:", "variants: [vendor], section:")
    assert bool(with_topics(topics, variant=variant).topics) is told


def test_a_text_knows_the_facts_and_stands_in_its_section(
    with_topics: Callable[..., NoteFacts], templates: Templates
) -> None:
    texts = {"speed.en.md.j2": "Tool {{ facts.version('tool') }} is fast.", "speed.zh.md.j2": "快"}
    note = render_notes(with_topics(TOPIC, texts), templates, "en", "md")
    assert "## Key features and enhancements\n\n### Speed\n\nTool 1.4.2+ali is fast.\n\n## Quick start" in note


def test_the_table_of_contents_may_name_the_tag_and_call_its_list_otherwise(
    with_topics: Callable[..., NoteFacts], templates: Templates
) -> None:
    topics = "contents: {tag: true, components: {en: System components, zh: 系统组件}}\nexample_regions: [south]\n"
    facts = with_topics(topics)
    english, chinese = (render_notes(facts, templates, language, "md") for language in ("en", "zh"))
    assert "| Tag | `25.02-vendor` |" in english
    assert "### System components" in english
    assert "such as `south`." in english
    assert "### 系统组件" in chinese


@pytest.mark.parametrize(
    ("topics", "message", "hint", "place"),
    [
        ("topic:\n", "unknown key 'topic'", "did you mean topics?", "1:1"),
        (TOPIC.replace("speed", "Speed"), "not written as it should be", "lower case", "2:13"),
        (TOPIC.replace("section:", "form: '25.02', section:"), "unknown key 'form'", "did you mean from?", "2:20"),
        (TOPIC.replace("section:", "from: 25.10, section:"), "read as the number 25.1", 'quote it: "25.10"', "2:26"),
        (TOPIC.replace("enhancements", "praise"), "section", None, "2:29"),
        (
            TOPIC.replace("section:", "variants: [vendr], section:"),
            "variants: unknown name 'vendr'",
            "did you mean vendor?",
            "2:31",
        ),
        (
            TOPIC.replace("section:", 'from: "25.04", until: "25.03", section:'),
            "no release is from 25.04 until 25.03",
            "the later one",
            "2:42",
        ),
        ("example_regions: [nort]\n", "example_regions: unknown name 'nort'", "did you mean north?", "1:19"),
    ],
)
def test_a_fault_is_named_with_its_place_and_a_way_out(
    with_topics: Callable[..., NoteFacts], topics: str, message: str, hint: str | None, place: str
) -> None:
    with pytest.raises(ManifestError) as caught:
        with_topics(topics)
    assert message in caught.value.message
    assert (hint or "") in (caught.value.hint or "")
    assert str(caught.value.location).endswith(f"notes/topics.yaml:{place}")


def test_a_text_that_is_not_there_in_a_language_of_the_family_is_a_fault(
    with_topics: Callable[..., NoteFacts],
) -> None:
    with pytest.raises(ManifestError) as caught:
        with_topics(TOPIC, {"speed.en.md.j2": "fast"})
    assert caught.value.message == "topic 'speed' has no text in 'zh'"
    assert str(caught.value.hint).endswith("notes/speed.zh.md.j2")
    assert str(caught.value.location).endswith("notes/topics.yaml:2:13")


@pytest.mark.parametrize(
    ("text", "words", "line"),
    [
        ("one\n{{ facts.nothing }}\n", "has no attribute 'nothing'", 2),
        ("one\ntwo\n{% if %}\n", "Expected an expression", 3),
    ],
)
def test_a_faulty_text_is_named_with_its_line(
    with_topics: Callable[..., NoteFacts], templates: Templates, text: str, words: str, line: int
) -> None:
    facts = with_topics(TOPIC, {"speed.en.md.j2": text, "speed.zh.md.j2": text})
    with pytest.raises(ManifestError) as caught:
        render_notes(facts, templates, "en", "md")
    assert words in caught.value.message
    assert str(caught.value.location).endswith(f"notes/speed.en.md.j2:{line}")


def test_a_text_that_has_gone_since_is_a_fault(with_topics: Callable[..., NoteFacts], templates: Templates) -> None:
    facts = with_topics(TOPIC)
    (facts.texts / "speed.en.md.j2").unlink()
    with pytest.raises(ManifestError, match=r"no template speed\.en\.md\.j2"):
        render_notes(facts, templates, "en", "md")


NOTICES = {
    "25.04": {"vpc-notice"},
    "25.07": {"single-tenant-notice"},
    "25.08": {"vpc-notice", "single-tenant-notice"},
    "25.09": {"vpc-notice", "single-tenant-notice"},
}
"""Of the releases that were really published; all others have none."""


@pytest.mark.parametrize("release", ["25.02", "25.03", "25.04", "25.07", "25.08", "25.09", "25.10"])
def test_the_notices_are_those_of_the_published_notes(real_facts: Callable[..., NoteFacts], release: str) -> None:
    notices = {topic.id for topic in real_facts(release, "serverless").about("assets")}
    assert notices == NOTICES.get(release, set())


@pytest.mark.parametrize("release", ["25.03", "25.04", "25.07", "25.08", "25.09", "25.10"])
def test_drivers_are_told_from_25_03_on(real_note: Callable[..., str], release: str) -> None:
    least = ">=570" if release < "25.05" else ">=575"
    note = real_note(release, "serverless", "en")
    assert f"needs NVIDIA driver {least} on the host" in note
    assert "R470 470.57" in note
    assert "R418, R440, R450" in note


def test_a_lowered_ray_is_told_with_its_reason(real_note: Callable[..., str]) -> None:
    note = real_note("25.04", "serverless", "en")
    assert "Ray **lowered** from 2.44.0 to 2.43.0: the published table has 2.43.0 without a reason" in note


def test_a_release_without_a_file_before_it_is_named(real_note: Callable[..., str]) -> None:
    assert "Compared with 25.04, the nearest earlier release" in real_note("25.07", "serverless", "en")
    assert "(25.06 was published in between)" in real_note("25.07", "serverless", "en")


def test_a_variant_that_lacks_an_architecture_says_so_beside_the_features(real_note: Callable[..., str]) -> None:
    features = real_note("25.10", "open", "en").partition("### Bug fixes")[0]
    assert "This variant is made for amd64 only, not for arm64." in features
