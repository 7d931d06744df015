"""Components with versions in running text, English or Chinese: "Ray 2.44", "CUDA 升级至 12.8.1".

Words are read only where they stand between a component's name and a version, so that prose stays free: whatever else
it says, it is no mention.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lj_image.catalog.schema import ComponentEntry
from lj_image.catalog.versions import keeps_promise, public


@dataclass(frozen=True, slots=True)
class Mention:
    """A component that a text names with a version."""

    component: str
    """Its id."""
    spelling: str
    """Its name as the text has it."""
    version: str | None
    """None where an upgrade is announced without one."""
    version_before: str | None
    """X in "from X to Y"."""
    upgraded: bool
    """Whether the text says that this version is an upgrade."""


# Not after a part of a longer word, a path or another version; not before one. Chinese needs no space around names.
_NAME_START = r"(?<![A-Za-z0-9_./@-])"
_NAME_END = r"(?!-?[A-Za-z0-9_])(?!\.\d)"
# Two numbers at least: "Ray 2" may be a count. The group is atomic, so that "12.80x" is not read as "12.8".
_VERSION = r"(?>v?(?P<{0}>\d+(?:\.\d+)+(?:\.?(?:a|b|rc|dev|post)\d+)*(?:\+[A-Za-z0-9]+(?:[._][A-Za-z0-9]+)*)?))"
_VERSION_END = (
    r"(?![A-Za-z0-9_%×]|\.\d)"
    r"(?!\s*(?:times|percent|[GM]i?B|ms|s|x|hours?|days?)\b)(?!\s*(?:倍|个百分点|小时|毫秒|秒))"
    # A range is no promise: "CUDA 12.4 or later", "12.4+".
    r"(?!\s*\+|\s*(?:or|and)\s+(?:later|newer|above|higher|up|earlier|older|below)\b)"
    r"(?!\s*(?:及|或|和)?(?:以上|以下|更高|更低|更新|之后|之前))"
)
_UPGRADE = r"(?:upgrad(?:ed?|es|ing)|updat(?:ed?|es|ing)|bump(?:ed|s)?|raised?|升级|更新|提升)"
_ENGLISH_GAP = (
    r"(?:versions?|release|is|are|was|were|has|have|been|now|newly|and|its|related|associated|core|components?|packages?"
    r"|family|librar(?:y|ies)|stack|toolkit|framework|series|runtime|goes|back|down|downgraded|lowered|stays?|remains?"
    r"|kept|still|to|at)\b"
)
_CHINESE_GAP = (
    r"(?:版本|相关|核心|组件|系列|框架|套件|均|已经|已|仍|被|统一|同步|全部|及其|及|和|等|的"
    r"|降级|回退|保持|维持|至|到|为|是|在)"
)
_GAP = rf"(?P<gap>(?>(?:\s|[(:：（]|{_UPGRADE}(?![A-Za-z])|{_ENGLISH_GAP}|{_CHINESE_GAP})*))"
_ARROW = (
    r"(?:\s*(?:->|→|⇒)\s*"
    r"|(?:\s+(?:is|are|was|were|has|have|been|now|back|down))*"
    r"(?:\s+(?:upgraded|updated|bumped|raised|downgraded|lowered))?\s+to\s+"
    r"|\s*(?:已)?(?:升级|更新|提升|降级|回退)?(?:至|到|为)\s*)"
)
_FROM = r"(?P<from>(?:from|从|由|自)\s*)?"
_OLD_BEFORE = re.compile(r"(?:\bfrom|从|由|自)\s*$", re.IGNORECASE)
_OTHER_BEFORE = re.compile(
    r"(?:\b(?:than|instead of|unlike|before|since|until|replac(?:es|ed|ing)|compared (?:with|to))"
    r"|比|较|相比|代替|替代|取代|替换|而非|不是|早于|晚于)\s*$",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[。;；!！]|[.?](?=\s|$)")
_UPGRADE_WORD = re.compile(rf"\b(?:{_UPGRADE})\b|升级|更新|提升", re.IGNORECASE)
_ANNOUNCED = re.compile(r"\s*(?:(?:is|are|was|were|has|have)\s+(?:been\s+)?upgraded\b|(?:均|也)?已升级)", re.IGNORECASE)
_TO = re.compile(r"\bto\s*$|[至到为]\s*$", re.IGNORECASE)


class MentionFinder:
    """Finds the components of one family; made once, for all its texts."""

    def __init__(self, components: Mapping[str, ComponentEntry]) -> None:
        self._ids = {
            _folded(spelling): component_id
            for component_id, entry in components.items()
            for spelling in (component_id, entry.title, *entry.aliases)
        }
        names = "|".join(sorted(map(_name_pattern, self._ids), key=len, reverse=True))
        name = rf"{_NAME_START}(?P<name>{names}){_NAME_END}"
        later = rf"(?P<arrow>{_ARROW})(?:(?P=name)\s*)?{_VERSION.format('second')}{_VERSION_END}"
        self._name = re.compile(name, re.IGNORECASE)
        self._versions = re.compile(
            rf"{name}{_GAP}{_FROM}{_VERSION.format('first')}(?:{later}|{_VERSION_END})", re.IGNORECASE
        )

    def find(self, text: str) -> Iterator[Mention]:
        """Yield the mentions of a text, in its order."""
        for named in self._name.finditer(text):
            ahead = text[: named.start()]
            if _OTHER_BEFORE.search(ahead):
                continue
            component, spelling = self._ids[_folded(named["name"])], named["name"]
            if (found := self._versions.match(text, named.start())) is None:
                if _ANNOUNCED.match(text, named.end()):
                    yield Mention(component, spelling, None, None, True)
                continue
            old, new = found["first"], found["second"]
            if new is None and not (found["from"] or _OLD_BEFORE.search(ahead)):
                old, new = None, found["first"]
            yield Mention(component, spelling, new, old, _says_upgraded(ahead, found))


def says(promised: str, mentioned: str) -> bool:
    """Say whether a text's version is the promised one, or a shorter form of it.

    >>> says("2.44.0", "2.44"), says("4.48.3+ali", "4.48.3"), says("12.8.0", "12.8.1"), says("1.5.2", "1.5.2+ali")
    (True, True, False, False)
    """
    local, local_promised = mentioned.partition("+")[2], promised.partition("+")[2]
    return keeps_promise(public(promised), public(mentioned)) and local_promised.startswith(local)


def _says_upgraded(ahead: str, found: re.Match[str]) -> bool:
    between = found["gap"] + (found["arrow"] or "")
    if _UPGRADE_WORD.search(between):
        return True
    # "upgrades Transformers to 4.49.0 and Ray to 2.44.0": the verb stands once, before all of them.
    sentence = _SENTENCE_END.split(ahead)[-1]
    return _TO.search(between) is not None and _UPGRADE_WORD.search(sentence) is not None


def _folded(spelling: str) -> str:
    """Return what spellings that differ in case and separators have in common."""
    return re.sub(r"[\s_-]+", "-", spelling).casefold()


def _name_pattern(folded: str) -> str:
    return re.escape(folded).replace(r"\-", r"[\s_-]+")
