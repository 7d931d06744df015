"""The note as an HTML page."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser

import pytest
from notes_records import WITH_NOTES

from lj_image.errors import UsageError
from lj_image.release.notes import NoteFacts, render_notes
from lj_image.release.notes.page import to_html
from lj_image.release.notes.render import cell, plain
from lj_image.templating import Templates

Facts = Callable[..., NoteFacts]
VOID = {"meta", "br", "hr", "img", "link"}


class Outline(HTMLParser):
    """Collects elements, and sees that each is closed in its turn."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize(("language", "lang"), [("en", "en"), ("zh", "zh-CN")])
def test_the_page_is_well_formed_and_says_its_language(
    tiny_facts: Facts, templates: Templates, language: str, lang: str
) -> None:
    outline = Outline(render_notes(tiny_facts(), templates, language, "html"))
    assert ("html", {"lang": lang}) in outline.elements
    assert ("meta", {"charset": "utf-8"}) in outline.elements
    names = {attributes.get("name") for tag, attributes in outline.elements if tag == "meta"}
    assert {"viewport", "color-scheme"} <= names


def test_the_page_asks_for_nothing_from_outside(tiny_facts: Facts, templates: Templates) -> None:
    page = render_notes(tiny_facts(), templates, "en", "html")
    tags = {tag for tag, _ in Outline(page).elements}
    assert not tags & {"script", "link", "img", "iframe", "base"}
    assert not re.search(r"url\(|@import|src=", page)
    assert "prefers-color-scheme: dark" in page


def test_wide_tables_scroll_in_a_box_of_their_own() -> None:
    html = to_html("| a | b |\n| --- | --- |\n| 1 | 2 |\n")
    assert html.startswith('<div class="wide"><table>')
    assert html.rstrip().endswith("</table></div>")


def test_a_heading_can_be_linked_to() -> None:
    assert '<h2 id="quick-start">Quick start</h2>' in to_html("## Quick start\n")
    assert '<h2 id="快速开始">' in to_html("## 快速开始\n")


def test_what_people_write_is_text_and_no_html(tiny_facts: Facts, templates: Templates) -> None:
    attack = "<script>alert(1)</script><b>x</b> & [go](javascript:alert(2))"
    release = f'release: "25.03"\nprevious: "25.02"\nhighlights: ["{attack}"]\nfixes: ["{attack}"]\n'
    page = render_notes(tiny_facts(release="25.03", r25_03=release), templates, "en", "html")
    outline = Outline(page)
    assert not {"script", "b", "a"} & {tag for tag, _ in outline.elements}
    assert page.count("&lt;script&gt;") == 2


def test_a_title_is_escaped_in_the_head(tiny_facts: Facts, templates: Templates) -> None:

    page = render_notes(tiny_facts(image=WITH_NOTES.replace("The Product", 'A "<b>" & C')), templates, "en", "html")
    assert 'content="A &quot;&lt;b&gt;&quot; &amp; C: tiny 25.02, vendor"' in page


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("grouped_gemm", "grouped_gemm"),
        ("flash_attn_3", "flash_attn_3"),
        ("*star* and `tick` and [link](x)", "*star* and `tick` and [link](x)"),
        ("_under_ and <b>", "_under_ and &lt;b&gt;"),
        ("a | b \\ c", "a | b \\ c"),
    ],
)
def test_plain_text_is_shown_as_it_is(text: str, html: str) -> None:
    assert to_html(plain(text)) == f"<p>{html}</p>\n"


def test_a_bar_stays_inside_its_cell() -> None:
    html = to_html(f"| a |\n| --- |\n| {cell('one | two')} |\n")
    assert "<td>one | two</td>" in html


def test_a_language_that_the_family_does_not_publish_in_names_those_that_it_does(
    tiny_facts: Facts, templates: Templates
) -> None:
    with pytest.raises(UsageError) as caught:
        render_notes(tiny_facts(), templates, "de", "md")
    assert caught.value.message == "the notes of tiny are not in 'de'"
    assert caught.value.hint == "its languages: en, zh"


def test_a_family_in_one_language_refuses_the_other(tiny_facts: Facts, templates: Templates) -> None:

    facts = tiny_facts(image=WITH_NOTES.replace("languages: [en, zh]", "languages: [en]"))
    with pytest.raises(UsageError, match="not in 'zh'"):
        render_notes(facts, templates, "zh", "html")
