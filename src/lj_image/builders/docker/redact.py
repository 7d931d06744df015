"""Keeps secret values out of everything a build shows."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote, quote_plus

MASK: Final = "***"
SHORTEST: Final = 4  # a shorter text would mask half of the log, and protects nothing
SHORTEST_PART: Final = 8  # of a secret with several lines, such as a configuration file or a certificate

_URL_PASSWORD = re.compile(r"://[^/\s:@]*:([^/\s@]+)@")


def redactions(values: Iterable[bytes]) -> tuple[str, ...]:
    """Return every text that would give one of the secret values away, the longest first."""
    found = {text for value in values for text in _forms(value) if len(text) >= SHORTEST}
    return tuple(sorted(found, key=lambda text: (-len(text), text)))


def redact(text: str, redactions: Iterable[str]) -> str:
    """Replace every redaction in a text."""
    for secret in redactions:
        text = text.replace(secret, MASK)
    return text


def _forms(value: bytes) -> Iterator[str]:
    """Yield a value as it may turn up in a log: as it is, encoded, and line by line, for a log shows lines.

    Lines are not encoded as well: a bundle of certificates has thousands, and each form costs time per log line.
    """
    text = value.decode("utf-8", "replace")
    for whole in {value, value.strip(), *(password.encode() for password in _URL_PASSWORD.findall(text))}:
        yield from _encoded(whole)
    lines = (line.strip() for line in text.splitlines())
    yield from (line for line in lines if len(line) >= SHORTEST_PART)


def _encoded(value: bytes) -> Iterator[str]:
    text = value.decode("utf-8", "replace")
    yield text
    yield quote(text, safe="")
    yield quote_plus(text)
    if len(value) >= SHORTEST:
        yield from _base64_forms(value)


def _base64_forms(value: bytes) -> Iterator[str]:
    """Yield the value in base64, also as the middle of a longer text such as `user:password`.

    The characters of base64 depend on where in a group of three bytes the value starts; those that also depend
    on its neighbours are left out.
    """
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(value).decode()
        for before in range(3):
            encoded = encode(bytes(before) + value).decode().rstrip("=")
            whole = (before + len(value)) // 3 * 4
            inner = encoded[(0, 2, 3)[before] : whole]
            if len(inner) >= SHORTEST_PART:
                yield inner
