"""What is said to people, in the languages that a family publishes in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

Language = Literal["en", "zh"]

LANGUAGES: Final[tuple[Language, ...]] = get_args(Language)


@dataclass(frozen=True, slots=True)
class Text:
    """One sentence or name; without a translation, its English form serves everywhere."""

    en: str
    zh: str | None = None

    def in_(self, language: Language) -> str:
        """Return the text in a language."""
        return self.zh if language == "zh" and self.zh is not None else self.en

    def __str__(self) -> str:
        return self.en


@dataclass(frozen=True, slots=True)
class Highlight:
    """A line of a release's feature list that a person wrote."""

    text: Text
    components: tuple[str, ...] = ()
    """Ids of the components whose change it tells, so that the derived line for them is left out."""
