"""A way to a registry that lets only so many bytes through in a second, as a distant region does.

`python -m bench.throttle PORT:BYTES_PER_SECOND[:CUT_AFTER_BYTES]...` listens on a free port of loopback for each
registry, prints these ports as JSON, and forwards until it is ended. Answers are not slowed: what counts here goes
upwards. Once so many bytes have passed, all connections of that way are cut, once.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from contextlib import suppress
from typing import Final

_PIECE_BYTES: Final = 64 * 1024
_BURST_S: Final = 0.05


class Cut(ConnectionError):
    """A connection was cut on purpose."""


class Way:
    """What passes to one registry, over all connections together."""

    def __init__(self, bytes_per_s: float, cut_after: float) -> None:
        self._bytes_per_s = bytes_per_s
        self._free_at = time.monotonic()
        self._left = cut_after
        self._writers: set[asyncio.StreamWriter] = set()

    def opened(self, *writers: asyncio.StreamWriter) -> None:
        """Know of a connection, to cut it with the others."""
        self._writers.update(writers)

    async def take(self, size: int) -> None:
        """Wait until so many bytes may pass; raises Cut when it is time for that."""
        self._left -= size
        if self._left <= 0:
            self._left = float("inf")
            for writer in self._writers:
                writer.transport.abort()
            raise Cut
        now = time.monotonic()
        self._free_at = max(self._free_at, now - _BURST_S) + size / self._bytes_per_s
        if (wait_s := self._free_at - now) > 0:
            await asyncio.sleep(wait_s)


async def forward(port: int, way: Way) -> int:
    """Listen, and forward to a port of loopback; return the port that is listened on."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", port)
        way.opened(writer, upstream_writer)
        await asyncio.gather(_copy(reader, upstream_writer, way), _copy(upstream_reader, writer, None))

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=_PIECE_BYTES)
    return int(server.sockets[0].getsockname()[1])


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: Way | None) -> None:
    with suppress(ConnectionError):
        while piece := await reader.read(_PIECE_BYTES):
            if way is not None:
                await way.take(len(piece))
            writer.write(piece)
            await writer.drain()
    with suppress(ConnectionError, OSError):
        writer.close()


async def _main(ways: list[list[str]]) -> None:
    made = [(int(port), Way(float(rate), float(cut[0]) if cut else float("inf"))) for port, rate, *cut in ways]
    print(json.dumps([await forward(port, way) for port, way in made]), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(_main([argument.split(":") for argument in sys.argv[1:]]))
