"""The engine's streamed answer to a build: JSON objects, one a line, whenever there is something to say."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from queue import Empty, SimpleQueue
from typing import Any, Final

import requests

from lj_image.builders.docker.engine import WIRE_ERRORS, engine_gone
from lj_image.builders.docker.session import transport
from lj_image.errors import EngineError

CHUNK_BYTES: Final = 64 * 1024
LOOK_UP_S: Final = 0.5
JOIN_S: Final = 5.0
# the last two are http.client's, when the connection is closed under its feet
READ_ERRORS: Final[tuple[type[Exception], ...]] = (*WIRE_ERRORS, AttributeError, ValueError)


def image_id_of(last_word: dict[str, Any]) -> str:
    """Return the id of the image that a build has made; raises EngineError when the engine ended without a word."""
    if not last_word:
        raise engine_gone()
    return str(last_word["aux"]["ID"])


class Answer:
    """Reads a response in a thread of its own.

    A thread that waits for the network can miss Ctrl-C: a signal that comes just before the system call does not
    end it, and an engine may say nothing for an hour. So the thread that builds waits for the queue, and looks up.
    """

    def __init__(self, response: requests.Response) -> None:
        transport.keep_alive(response)
        self._response = response
        self._chunks: SimpleQueue[bytes | EngineError | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._read, name="lj-image-answer", daemon=True)
        self._thread.start()

    def objects(self) -> Iterator[dict[str, Any]]:
        """Yield each object as soon as it has come; raises EngineError when the connection breaks."""
        partial = b""
        for chunk in self._received():
            *lines, partial = (partial + chunk).split(b"\n")
            yield from (json.loads(line) for line in lines if line.strip())
        if partial.strip():
            yield json.loads(partial)

    def disconnect(self) -> None:
        """End the connection; for any thread. The engine takes that as the wish to stop."""
        transport.disconnect(self._response)

    def close(self) -> None:
        """End the connection and the thread that reads it."""
        self.disconnect()
        self._thread.join(JOIN_S)
        self._response.close()

    def _received(self) -> Iterator[bytes]:
        while True:
            try:
                chunk = self._chunks.get(timeout=LOOK_UP_S)
            except Empty:
                continue
            if isinstance(chunk, EngineError):
                raise chunk
            if chunk is None:
                return
            yield chunk

    def _read(self) -> None:
        try:
            for chunk in self._response.raw.stream(CHUNK_BYTES):
                self._chunks.put(chunk)
            self._chunks.put(None)
        except READ_ERRORS:
            self._chunks.put(engine_gone())
