"""A version as YAML that every reader takes for text: in quotes where one would see a number, a date or a truth."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import yaml

_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!~-]*")
"""What needs no quotes in a block nor in a flow; narrower than YAML's own rule (YAML 1.2.2 §7.3.3)."""
_READ_OTHERWISE: Final = re.compile(r"\d+(\.\d*)?([eE][-+]?\d+)?|0o[0-7]+|0x[0-9a-fA-F]+|[yYnN]")
"""What readers other than PyYAML take for a number (YAML 1.2.2 §10.3.2) or a truth (YAML 1.1): 1e5, 0o17, y."""
_TEXT: Final = "tag:yaml.org,2002:str"
_RESOLVER: Final[Any] = yaml.SafeLoader("")


def version_text(version: str, style: str | None = None) -> str:
    """Return a version as a YAML scalar, in the quotes of `style` (`'`, `"` or none) as far as they can hold it.

    >>> version_text("0.7.3"), version_text("2.50"), version_text("2.50", "'")
    ('0.7.3', '"2.50"', "'2.50'")
    """
    if style == "'" and version.isprintable():
        return "'" + version.replace("'", "''") + "'"
    if style != '"' and is_plain(version):
        return version
    return json.dumps(version, ensure_ascii=False)


def is_plain(text: str) -> bool:
    """Say whether a text stays the same text without quotes."""
    if _PLAIN.fullmatch(text) is None or _READ_OTHERWISE.fullmatch(text) is not None:
        return False
    return bool(_RESOLVER.resolve(yaml.ScalarNode, text, (True, False)) == _TEXT)
