"""A note's Markdown as one HTML page that needs nothing beside itself."""

from __future__ import annotations

import html
from itertools import pairwise
from typing import TYPE_CHECKING

from lj_image.catalog.text import Language
from lj_image.release.notes.note import NoteFacts
from lj_image.templating import Templates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it import MarkdownIt
    from markdown_it.token import Token


def page(facts: NoteFacts, templates: Templates, language: Language, markdown: str) -> str:
    """Return the page; whatever the Markdown holds of HTML is shown as text."""
    title = f"{facts.image} {facts.release}"
    return templates.render(
        "notes/page.html.j2",
        language={"en": "en", "zh": "zh-CN"}[language],
        title=html.escape(title),
        description=html.escape(f"{facts.product.in_(language)}: {title}, {facts.variant}"),
        body=to_html(markdown),
    )


def to_html(markdown: str) -> str:
    """Return Markdown as HTML: tables scroll in a box of their own, headings can be linked to."""
    parser = _parser()
    tokens = parser.parse(markdown)
    for heading, text in pairwise(tokens):
        if heading.type == "heading_open":
            heading.attrSet("id", "-".join(text.content.casefold().split()))
    return str(parser.renderer.render(tokens, parser.options, {}))


def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("table_open", _table_open)
    parser.add_render_rule("table_close", _table_close)
    return parser


def _table_open(renderer: object, tokens: Sequence[Token], position: int, options: object, env: object) -> str:
    return '<div class="wide"><table>\n'


def _table_close(renderer: object, tokens: Sequence[Token], position: int, options: object, env: object) -> str:
    return "</table></div>\n"
