"""The engine's streamed answers: JSON objects, one a line, whenever there is something to say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import requests

CHUNK_BYTES: Final = 64 * 1024


def objects(response: requests.Response) -> Iterator[dict[str, Any]]:
    """Yield each object as soon as it has come; raises urllib3's errors when the connection breaks."""
    partial = b""
    for chunk in response.raw.stream(CHUNK_BYTES):
        *lines, partial = (partial + chunk).split(b"\n")
        yield from (json.loads(line) for line in lines if line.strip())
    if partial.strip():
        yield json.loads(partial)
