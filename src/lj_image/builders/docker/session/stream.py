"""One gRPC call: messages in, messages out, between the thread that handles it and the thread that does I/O."""

from __future__ import annotations

import struct
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Final
from urllib.parse import quote

KIB: Final = 1024
BATCH_BYTES: Final = 64 * KIB  # small messages leave together: 20,000 files cost 0.3 s instead of 2.3 s
OUTGOING_LIMIT_BYTES: Final = 256 * KIB  # a fast reader of a large file waits here for a slow engine
ACKNOWLEDGE_BYTES: Final = 128 * KIB  # of the 1 MiB window that the peer may fill

# gRPC over HTTP/2, "Length-Prefixed-Message": one byte compressed flag, four bytes big-endian length.
PREFIX: Final = struct.Struct(">BI")


class Status(IntEnum):
    """gRPC status codes that we send or look at (grpc/grpc doc/statuscodes.md)."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    NOT_FOUND = 5
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14


class RpcError(Exception):
    """A call that failed; the text is shown to the user as part of the build's error."""

    def __init__(self, status: Status, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text

    def trailers(self) -> list[tuple[str, str]]:
        """Return the trailing metadata; gRPC over HTTP/2 percent-encodes the message."""
        message = quote(self.text, safe=" !\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~")
        return [("grpc-status", str(int(self.status))), ("grpc-message", message)]


OK_TRAILERS: Final = [("grpc-status", "0")]


class Stream:
    """A call as its handler sees it: `recv`, `send`, `flush`. The rest belongs to the I/O thread."""

    def __init__(
        self, number: int, path: str, metadata: Mapping[str, Sequence[str]], wake: Callable[[Stream], None]
    ) -> None:
        self.number = number
        self.path = path
        self.metadata = metadata
        """Request headers; a header may come several times."""
        self.headers_sent = False
        self._wake = wake
        self._changed = threading.Condition()
        self._partial = bytearray()
        self._incoming: deque[bytes] = deque()
        self._consumed_bytes = 0
        self._unacknowledged_bytes = 0
        self._ended = False
        self._failure: RpcError | None = None
        self._batch = bytearray()
        self._outgoing = bytearray()
        self._trailers: list[tuple[str, str]] | None = None

    # the handler's side

    def recv(self) -> bytes | None:
        """Return the next message, waiting for it; None when the peer will send no more.

        Raises RpcError when the call was cancelled or the session ended.
        """
        if not self._incoming:
            self.flush()
        with self._changed:
            self._changed.wait_for(lambda: self._incoming or self._ended or self._failure)
            if self._failure:
                raise self._failure
            if not self._incoming:
                return None
            message = self._incoming.popleft()
            self._consumed_bytes += PREFIX.size + len(message)
            acknowledge = self._consumed_bytes >= ACKNOWLEDGE_BYTES
        if acknowledge:
            self._wake(self)
        return message

    def send(self, message: bytes) -> None:
        """Queue a message; it leaves with the batch, or when the handler waits or returns."""
        self._batch += PREFIX.pack(0, len(message))
        self._batch += message
        if len(self._batch) >= BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Hand the batch to the I/O thread, waiting while too much is on its way.

        Raises RpcError when the call was cancelled or the session ended.
        """
        if not self._batch:
            return
        with self._changed:
            self._changed.wait_for(lambda: len(self._outgoing) < OUTGOING_LIMIT_BYTES or self._failure)
            if self._failure:
                raise self._failure
            self._outgoing += self._batch
        self._batch.clear()
        self._wake(self)

    def finish(self, failure: RpcError | None = None) -> None:
        """End the call, after what was sent."""
        try:
            self.flush()
        except RpcError:
            return  # the peer has already ended it
        self._trailers = failure.trailers() if failure else OK_TRAILERS
        self._wake(self)

    # the I/O thread's side

    def feed(self, chunk: bytes) -> None:
        """Take received bytes, and cut them into messages."""
        self._unacknowledged_bytes += len(chunk)
        self._partial += chunk
        while len(self._partial) >= PREFIX.size:
            compressed, size = PREFIX.unpack_from(self._partial)
            if compressed:  # we announce no encoding, so this breaks the protocol
                self.fail(RpcError(Status.INTERNAL, "compressed message"))
                return
            if len(self._partial) < PREFIX.size + size:
                return
            self._deliver(bytes(self._partial[PREFIX.size : PREFIX.size + size]))
            del self._partial[: PREFIX.size + size]

    def _deliver(self, message: bytes) -> None:
        with self._changed:
            self._incoming.append(message)
            self._changed.notify_all()

    def end_of_messages(self) -> None:
        """Note that the peer will send no more."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def fail(self, failure: RpcError) -> None:
        """Wake whoever waits in this call, with an error."""
        with self._changed:
            self._failure = self._failure or failure
            self._changed.notify_all()

    def take_consumed(self) -> int:
        """Return how many received bytes the handler has used up since the last call."""
        with self._changed:
            consumed, self._consumed_bytes = self._consumed_bytes, 0
        self._unacknowledged_bytes -= consumed
        return consumed

    def take_unread(self) -> int:
        """Return how many received bytes are left that no handler will use up any more."""
        unread, self._unacknowledged_bytes = self._unacknowledged_bytes, 0
        return unread

    def outgoing_bytes(self) -> int:
        """Return how much waits to be sent."""
        return len(self._outgoing)

    def take(self, limit: int) -> bytes:
        """Return up to `limit` bytes to send, and let a waiting handler continue."""
        with self._changed:
            chunk = bytes(self._outgoing[:limit])
            del self._outgoing[:limit]
            self._changed.notify_all()
            return chunk

    def trailers(self) -> list[tuple[str, str]] | None:
        """Return the trailing metadata once the handler is through."""
        return self._trailers
