"""A pipe of bytes between the engine and the session server, and the one that stands on a socket."""

from __future__ import annotations

import contextlib
import socket
import ssl
from typing import Protocol


class BytePipe(Protocol):
    """A bidirectional, non-blocking connection that a selector can wait for."""

    def fileno(self) -> int:
        """Return the descriptor to wait for."""

    def pending(self) -> bool:
        """Tell whether bytes are already here that a selector would not see."""

    def recv(self, size: int) -> bytes | None:
        """Return up to `size` bytes; None when there are none yet, `b""` when the other side is gone."""

    def send(self, chunk: memoryview) -> int:
        """Send what fits now and return its length, 0 when nothing does."""

    def close(self) -> None:
        """End the connection in both directions; closing twice is harmless."""


class SocketPipe:
    """A plain or TLS socket; `received` are bytes that somebody has read from it before us."""

    def __init__(self, sock: socket.socket, received: bytes = b"", *, owner: object = None) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._received = received
        self._owner = owner  # would close the socket if it were collected

    def fileno(self) -> int:
        """Return the socket's descriptor, -1 once closed."""
        return self._socket.fileno()

    def pending(self) -> bool:
        """Tell whether bytes wait in front of the descriptor: read ahead, or decrypted already."""
        return bool(self._received) or (isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0)

    def recv(self, size: int) -> bytes | None:
        """Return up to `size` bytes; None when there are none yet, `b""` when the other side is gone."""
        if self._received:
            chunk, self._received = self._received[:size], self._received[size:]
            return chunk
        try:
            return self._socket.recv(size)
        except (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return None
        except (ConnectionResetError, ssl.SSLEOFError):
            return b""

    def send(self, chunk: memoryview) -> int:
        """Send what fits now and return its length, 0 when nothing does."""
        try:
            return self._socket.send(chunk)
        except (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return 0

    def close(self) -> None:
        """End the connection in both directions."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._owner = None
