"""What a Dockerfile's ENV makes of a value that names other variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

# Dockerfile reference, "Environment replacement": $name, ${name}, ${name:-word} and ${name:+word}; words nest.
_VARIABLE: Final = re.compile(
    r"\$\{(?P<name>\w+)(?:(?P<form>:[-+])(?P<word>(?:[^{}]|\{[^{}]*\})*))?\}|\$(?P<plain>\w+)"
)


def expanded(value: str, environment: Mapping[str, str]) -> str:
    """Return a value with its variables replaced by those of the base."""

    def replacement(found: re.Match[str]) -> str:
        current = environment.get(found["name"] or found["plain"], "")
        match found["form"]:
            case ":+":
                return expanded(found["word"], environment) if current else ""
            case ":-":
                return current or expanded(found["word"], environment)
        return current

    return _VARIABLE.sub(replacement, value)
