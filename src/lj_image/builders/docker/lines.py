"""Lines of text from chunks of bytes."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import Final

LINE_LIMIT: Final = 64 * 1024  # a step may write forever without a line end


class LineReader:
    """Cuts bytes into lines of text; chunks may end anywhere, also within a character."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._partial = ""

    def feed(self, chunk: bytes) -> Iterator[str]:
        """Yield the lines that `chunk` completes; a carriage return ends one, as progress bars draw them."""
        text = self._partial + self._decoder.decode(chunk)
        *lines, self._partial = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        yield from lines
        if len(self._partial) > LINE_LIMIT:
            yield from self.rest()

    def rest(self) -> Iterator[str]:
        """Yield what is left when nothing more comes."""
        text, self._partial = self._partial + self._decoder.decode(b"", final=True), ""
        if text:
            yield text
