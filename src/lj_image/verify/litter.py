"""Which paths have no business in a layer: caches, left-over wheels, credentials, files of a build.

Pure: paths in, reasons out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of litter."""

    kind: str
    pattern: re.Pattern[str]
    """Matched against the whole path, which has no leading slash."""
    owned_is_fine: bool = False
    """Whether a wheel or a package may bring such a file: virtualenv has wheels inside."""


BYTECODE: Final = "bytecode"

RULES: Final = (
    Rule(
        "cache", re.compile(r"(root|home/[^/]+)/\.cache/.+|\.cache/.+|var/cache/apt/.+\.(deb|bin)|var/lib/apt/lists/.+")
    ),
    Rule(
        "credentials", re.compile(r"(.*/)?(\.netrc|\.pypirc|\.git-credentials|\.docker/config\.json|\.aws/credentials)")
    ),
    Rule("private key", re.compile(r"(.*/)?id_(rsa|dsa|ecdsa|ed25519)"), owned_is_fine=True),
    Rule("left-over wheel", re.compile(r".+\.whl|wheels/.+"), owned_is_fine=True),
    Rule("temporary file", re.compile(r"(var/)?tmp/.+|.+\.partial"), owned_is_fine=True),
    Rule("shell history", re.compile(r"(root|home/[^/]+)/\.(bash|python|ash)_history|root/\.wget-hsts")),
    Rule(BYTECODE, re.compile(r".+\.py[co]"), owned_is_fine=True),
)

_EXCUSED: Final = re.compile(
    # Debian's packages compile what they bring when they are configured; nobody lists those files.
    r"usr/lib/python3/dist-packages/.*\.pyc|usr/lib/python3\.\d+/.*\.pyc|usr/share/python3/.*\.pyc"
    # apt's own lock and folders, which an `apt-get clean` leaves.
    r"|var/(cache/apt/archives|lib/apt/lists)/(lock|partial|auxfiles)"
)


def whiteout(path: str) -> bool:
    """Say whether a member deletes something instead of being something (OCI image layer, whiteouts)."""
    return path.rpartition("/")[2].startswith(".wh.")


def candidates(paths: Iterable[str], *, bytecode: bool = False) -> Mapping[str, Rule]:
    """Return the paths that look like litter, each with the rule that says so."""
    found: dict[str, Rule] = {}
    for path in paths:
        rule = None if whiteout(path) else _rule_of(path)
        if rule is not None and not (bytecode and rule.kind == BYTECODE) and not _EXCUSED.fullmatch(path):
            found[path] = rule
    return found


def _rule_of(path: str) -> Rule | None:
    return next((rule for rule in RULES if rule.pattern.fullmatch(path)), None)


def littered(found: Mapping[str, Rule], owned: Callable[[list[str]], Iterable[str]]) -> Mapping[str, str]:
    """Return path -> kind of what remains once `owned` has named those that some package brings."""
    asked = [path for path, rule in found.items() if rule.owned_is_fine]
    excused = set(owned(asked)) if asked else set()
    return {path: rule.kind for path, rule in found.items() if not (rule.owned_is_fine and path in excused)}
