"""A note's facts as text: Markdown from the templates, HTML from that Markdown, JSON from the facts alone."""

from __future__ import annotations

import json
import re
from typing import Final, Literal, assert_never

from lj_image.catalog.text import LANGUAGES, Language
from lj_image.catalog.topics import Topic
from lj_image.errors import UsageError
from lj_image.release.notes.note import NoteFacts
from lj_image.templating import Templates

Form = Literal["md", "html", "json"]

# CommonMark §2.4: any of these may follow a backslash. An underscore inside a word (§6.2) and a `>` or `#` inside a
# line mean nothing, so names such as grouped_gemm and >=570 stay readable.
_SPECIAL: Final = re.compile(r"[\\`*\[\]<|]|\b_|_\b")


def render_notes(facts: NoteFacts, templates: Templates, language: str, form: Form) -> str:
    """Render a note; JSON holds all languages at once.

    Raises UsageError for a language that the family does not publish in, ManifestError for a faulty text of its own.
    """
    match form:
        case "json":
            return json.dumps(facts.to_json(), indent=2, ensure_ascii=False) + "\n"
        case "md":
            return _markdown(facts, templates, spoken(facts, language))
        case "html":
            from lj_image.release.notes.page import page  # late: only this form needs a Markdown parser

            own = spoken(facts, language)
            return page(facts, templates, own, _markdown(facts, templates, own))
    assert_never(form)


def spoken(facts: NoteFacts, language: str) -> Language:
    """Return a language of the family; raises UsageError for another."""
    found = next((item for item in LANGUAGES if item == language and item in facts.languages), None)
    if found is None:
        raise UsageError(
            f"the notes of {facts.image} are not in {language!r}",
            hint=f"its languages: {', '.join(facts.languages)}",
        )
    return found


def _markdown(facts: NoteFacts, templates: Templates, language: Language) -> str:
    own = Templates((facts.texts, *templates.folders), templates.compiled)

    def text_of(topic: Topic) -> str:
        return own.render(topic.template(language), facts=facts, language=language, plain=plain).strip()

    return own.render("notes/note.md.j2", facts=facts, language=language, plain=plain, cell=cell, text_of=text_of)


def plain(text: str) -> str:
    """Return text that Markdown shows as it is."""
    return _SPECIAL.sub(r"\\\g<0>", text)


def cell(markdown: str) -> str:
    """Return Markdown that may stand in a table's cell."""
    return re.sub(r"(?<!\\)\|", r"\\|", markdown)
