"""Which differences two builders of one plan may have, and why: one short table, and nothing else is excused."""

from __future__ import annotations

import csv
import io
import re
import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import translate
from typing import Final, Literal

from lj_image.release.compare.tree import Fact

Aspect = Literal["only in A", "only in B", "type", "mode", "owner", "link target", "content", "device", "xattrs"]
"""What differs at a path, in the order in which it is told."""
ALONE: Final[tuple[Aspect, ...]] = ("only in A", "only in B")

_INSTALLER: Final = re.compile(r"(?:.*/)?[^/]+\.dist-info/INSTALLER")
_BYTECODE: Final = re.compile(r"(?:.*/)?__pycache__/[^/]+\.pyc")
_BYTECODE_FOLDER: Final = re.compile(r"(?:.*/)?__pycache__")
_MOUNT_POINT: Final = re.compile(r"tmp/lj-image")
"""`dockerfile.CONTEXT_MOUNT`, which is not imported, since all templates would be."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of difference that is none that matters."""

    title: str
    pattern: re.Pattern[str]
    """Matched against the whole path, which has no leading slash."""
    aspects: frozenset[Aspect]
    why: str


_ANY: Final[frozenset[Aspect]] = frozenset((*ALONE, "type", "mode", "owner", "link target", "content", "xattrs"))

RULES: Final = (
    Rule("INSTALLER", _INSTALLER, frozenset(("content",)), "says who installed the distribution, which is the builder"),
    Rule(
        "bytecode",
        _BYTECODE,
        frozenset((*ALONE, "content")),
        "made from the source beside it, and holds that file's time; Python makes it anew",
    ),
    Rule("bytecode", _BYTECODE_FOLDER, frozenset(ALONE), "holds bytecode and nothing else"),
    Rule(
        "mount point",
        _MOUNT_POINT,
        frozenset(ALONE),
        "where the steps of a Dockerfile see their files; an engine leaves the empty folder behind",
    ),
)
"""Of paths."""

RECORD_TITLE: Final = "RECORD"
RECORD_WHY: Final = "lists INSTALLER and bytecode by digest, and those differ; every other row is the same"

LABELS: Final = {
    "org.opencontainers.image.created": "the time of the build",
    "org.opencontainers.image.revision": "the commit that was built, which says nothing of what is inside",
    "io.lj-image.inputs": "digests the builder's own name and settings, too",
    "io.lj-image.tool": "the version of lj-image that built",
}
"""Label -> why it may differ between two builds of one plan."""


@dataclass(frozen=True, slots=True)
class Excuse:
    """Why a difference does not count."""

    title: str
    why: str


def excuse(path: str, aspect: Aspect, rules: Iterable[Rule]) -> Excuse | None:
    """Return why a difference at a path is expected, None where it is not."""
    found = (rule for rule in rules if aspect in rule.aspects and rule.pattern.fullmatch(path))
    return next((Excuse(rule.title, rule.why) for rule in found), None)


def ignoring(glob: str) -> Rule:
    """Return the rule of a user's glob: of whole paths, where `*` passes slashes; a folder's has all below it.

    >>> ignoring("/var/log").pattern.fullmatch("var/log/dpkg.log") is not None
    True
    """
    name = glob.strip("/")
    return Rule(
        f"--ignore {glob}", re.compile(f"{translate(name)}|{translate(f'{name}/*')}"), _ANY | {"device"}, "asked for"
    )


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of two RECORDs that are on one side alone, without those that are expected to be."""

    before: tuple[str, ...]
    after: tuple[str, ...]


def record_rows(before: Fact, after: Fact) -> Rows | None:
    """Compare two RECORDs as rows in any order; None where one of them was not kept or is none."""
    if before.text is None or after.text is None:
        return None
    try:
        old, new = (Counter(_rows(zlib.decompress(text))) for text in (before.text, after.text))
    except (UnicodeDecodeError, csv.Error):
        return None
    return Rows(tuple(sorted((old - new).elements())), tuple(sorted((new - old).elements())))


def _rows(text: bytes) -> Iterable[str]:
    for row in csv.reader(io.StringIO(text.decode(), newline="")):
        if row and not (_INSTALLER.fullmatch(row[0]) or _BYTECODE.fullmatch(row[0])):
            yield ",".join(row)
