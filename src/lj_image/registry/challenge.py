"""What a 401 asks for: the challenges of WWW-Authenticate, and the scopes in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

_SCHEMES: Final = ("bearer", "basic")
_TOKEN: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PART: Final = re.compile(
    rf'(?P<name>{_TOKEN})\s*=\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<bare>[^\s",]+))'
    rf"|(?P<scheme>{_TOKEN})(?=\s|,|$)"
)
"""A parameter, or the name of a scheme (RFC 9110 §11.6.1). Quoted values hold commas."""


@dataclass(frozen=True, slots=True)
class Challenge:
    """What a 401 asks for."""

    scheme: str
    """`bearer` or `basic`."""
    parameters: Mapping[str, str] = field(default_factory=dict)


def challenges(header: str) -> tuple[Challenge, ...]:
    """Read WWW-Authenticate, several of it joined by commas; Bearer first, and only what registries use."""
    found: list[tuple[str, dict[str, str]]] = []
    for part in _PART.finditer(header):
        if part["scheme"] is not None:
            found.append((part["scheme"].lower(), {}))
        elif found:
            value = part["bare"] if part["quoted"] is None else re.sub(r"\\(.)", r"\1", part["quoted"])
            found[-1][1].setdefault(part["name"].lower(), value)
    known = (Challenge(scheme, parameters) for scheme, parameters in found if scheme in _SCHEMES)
    return tuple(sorted(known, key=lambda item: item.scheme != "bearer"))


def asked_scopes(own: Iterable[str], wanted: str) -> tuple[str, ...]:
    """Return what to ask for: our own scopes, then whatever else the challenge wants.

    Ours go first, as some token services grant the first alone. A challenge for two repositories has both in one value.
    """
    scopes = list(dict.fromkeys(own))
    for scope in wanted.split():
        name, _, actions = scope.rpartition(":")
        place = next((at for at, known in enumerate(scopes) if known.rpartition(":")[0] == name), None)
        if place is None or not name:
            scopes += [scope] if scope not in scopes else []
            continue
        have = scopes[place].rpartition(":")[2].split(",")
        more = [action for action in actions.split(",") if action not in have]
        scopes[place] = f"{name}:{','.join((*have, *more))}"
    return tuple(scopes)


def repository_of(scopes: Iterable[str]) -> str:
    """Return the repository that the first scope is about; "" where it is about none."""
    kind, _, rest = next(iter(scopes), "").partition(":")
    return rest.rpartition(":")[0] if kind == "repository" else ""
