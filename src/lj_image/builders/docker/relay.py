"""Between a container's attached socket and our own input and output, both ways at once, until the container ends."""

from __future__ import annotations

import os
import selectors
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from lj_image.verify.frames import STDERR, Demultiplexer

BLOCK_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Streams:
    """Our side, as file descriptors."""

    stdin: int | None = 0
    """None for a container that gets no input."""
    stdout: int = 1
    stderr: int = 2


class Relay:
    """Carries bytes; a terminal's are one stream, without one output and errors come framed."""

    def __init__(self, sock: socket.socket, streams: Streams, *, framed: bool) -> None:
        self._sock = sock
        self._streams = streams
        self._frames = Demultiplexer() if framed else None
        self._waiting = b""
        """Input that the container has not taken yet: meanwhile no more is read."""
        self._input_ended = False
        self._selector = selectors.SelectSelector()  # epoll refuses plain files, and `< file` is one
        sock.setblocking(False)

    def run(self, changes: int | None = None, on_change: Callable[[], None] = lambda: None) -> None:
        """Carry until the container's side ends; `on_change` is called when `changes` becomes readable."""
        with self._selector:
            self._selector.register(self._sock, selectors.EVENT_READ)
            self._listen_to_input(self._streams.stdin is not None)
            if changes is not None:
                self._selector.register(changes, selectors.EVENT_READ)
            while True:
                for key, mask in self._selector.select():
                    if key.fileobj == changes:
                        os.read(changes, BLOCK_BYTES)
                        on_change()
                    elif key.fileobj is self._sock:
                        if mask & selectors.EVENT_WRITE:
                            self._send()
                        if mask & selectors.EVENT_READ and not self._receive():
                            return
                    elif not self._waiting:
                        self._take_input(key.fd)

    def _take_input(self, descriptor: int) -> None:
        try:
            taken = os.read(descriptor, BLOCK_BYTES)
        except OSError:  # a terminal that has gone away
            taken = b""
        if taken:
            self._waiting = taken
            self._send()
            return
        self._input_ended = True
        self._listen_to_input(False)
        with suppress(OSError):  # nothing more comes; what the container prints still does
            self._sock.shutdown(socket.SHUT_WR)

    def _send(self) -> None:
        try:
            sent = self._sock.send(self._waiting) if self._waiting else 0
        except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
            sent = 0
        except OSError:  # the container has closed its input; what it prints still comes
            sent = len(self._waiting)
        self._waiting = self._waiting[sent:]
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._waiting else 0)
        self._selector.modify(self._sock, wanted)
        if not self._input_ended:
            self._listen_to_input(not self._waiting)

    def _listen_to_input(self, wanted: bool) -> None:
        descriptor = self._streams.stdin
        if descriptor is None:
            return
        registered = descriptor in self._selector.get_map()
        if wanted and not registered:
            self._selector.register(descriptor, selectors.EVENT_READ)
        elif registered and not wanted:
            self._selector.unregister(descriptor)

    def _receive(self) -> bool:
        """Show what has come; say whether more may come."""
        while True:
            try:
                received = self._sock.recv(BLOCK_BYTES)
            except (BlockingIOError, ssl.SSLWantReadError):
                return True
            except OSError:
                return False
            if not received:
                return False
            self._show(received)

    def _show(self, received: bytes) -> None:
        if self._frames is None:
            _write(self._streams.stdout, received)
            return
        for stream, content in self._frames.feed(received):
            _write(self._streams.stderr if stream == STDERR else self._streams.stdout, content)


def _write(descriptor: int, content: bytes) -> None:
    while content:
        try:
            content = content[os.write(descriptor, content) :]
        except BlockingIOError:  # whoever started us may have made our output non-blocking
            selector = selectors.SelectSelector()
            with selector:
                selector.register(descriptor, selectors.EVENT_WRITE)
                selector.select()
