"""The engine's streamed answers: JSON objects, one a line, whenever there is something to say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import requests

from lj_image.builders.docker.engine import WIRE_ERRORS, engine_gone

CHUNK_BYTES: Final = 64 * 1024


def objects(response: requests.Response) -> Iterator[dict[str, Any]]:
    """Yield each object as soon as it has come; raises EngineError when the connection breaks."""
    partial = b""
    for chunk in _chunks(response):
        *lines, partial = (partial + chunk).split(b"\n")
        yield from (json.loads(line) for line in lines if line.strip())
    if partial.strip():
        yield json.loads(partial)


def _chunks(response: requests.Response) -> Iterator[bytes]:
    """Yield what has come; errors are caught here, around the reading alone, not around what is done with it."""
    stream = response.raw.stream(CHUNK_BYTES)
    while True:
        try:
            chunk = next(stream, None)
        except WIRE_ERRORS as error:
            raise engine_gone() from error
        if chunk is None:
            return
        yield chunk
