"""One long-lived shell inside a container, so that a command costs milliseconds and not a process of the engine.

Works over whatever docker-py talks through: a unix socket, TCP or TLS.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable
from typing import Any, Final, Protocol

from docker import APIClient

from lj_image.errors import VerificationError
from lj_image.verify.engine import engine_errors
from lj_image.verify.frames import Demultiplexer, Output, Reply, frame_command, new_token

DEFAULT_TIMEOUT_S: Final = 120.0
_BLOCK_BYTES: Final = 256 * 1024


class ChannelError(VerificationError):
    """A command took the channel with it: it ended the shell, or did not end itself."""


class Pipe(Protocol):
    """The part of a socket that a channel uses."""

    def sendall(self, content: bytes, /) -> None: ...  # noqa: D102
    def recv(self, most: int, /) -> bytes: ...  # noqa: D102
    def settimeout(self, seconds: float, /) -> None: ...  # noqa: D102
    def close(self) -> None: ...  # noqa: D102


class Channel:
    """A shell that runs one command after the other; open it with `open_channel`."""

    def __init__(self, pipe: Pipe, *, keep: object = None) -> None:
        self._pipe = pipe
        self._keep = keep  # docker-py's response: collected as garbage, it would close the socket
        self._frames = Demultiplexer()
        self.closed = False

    def run(self, command: str | bytes, *, stdin: str | None = None, timeout_s: float = DEFAULT_TIMEOUT_S) -> Output:
        """Run a shell command and return its output, whatever its exit code.

        Raises ChannelError when the shell goes away or the command does not end in time; the channel is closed then.
        """
        if self.closed:
            raise ChannelError("the channel into the container is closed", hint="open a new one")
        shown = command.decode(errors="replace") if isinstance(command, bytes) else command
        encoded = command if isinstance(command, bytes) else command.encode(errors="surrogateescape")
        reply = Reply(new_token())
        deadline = time.monotonic() + timeout_s
        try:
            self._pipe.settimeout(timeout_s)
            self._pipe.sendall(frame_command(encoded, reply.token, stdin))
            while not reply.complete():
                self._receive(reply, deadline)
        except TimeoutError:
            self.close()
            raise ChannelError(f"no end after {timeout_s:g} s: {_shortened(shown)}", hint=_printed(reply)) from None
        except (OSError, EOFError) as error:
            self.close()
            reason = f" ({error})" if str(error) else ""
            raise ChannelError(
                f"the shell inside the container ended{reason} during: {_shortened(shown)}", hint=_printed(reply)
            ) from None
        except BaseException:  # Ctrl-C: what is still to come belongs to no later command
            self.close()
            raise
        return reply.output()

    def _receive(self, reply: Reply, deadline: float) -> None:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        self._pipe.settimeout(left_s)
        received = self._pipe.recv(_BLOCK_BYTES)
        if not received:
            raise EOFError
        for stream, content in self._frames.feed(received):
            reply.add(stream, content)

    def close(self) -> None:
        """End the shell by ending its input; safe to call twice."""
        self.closed = True
        self._pipe.close()
        close = getattr(self._keep, "close", None)
        if close is not None:
            close()


def open_channel(api: APIClient, container: str, *, environment: Iterable[str] = ()) -> Channel:
    """Start a shell in a running container and return the channel to it."""
    with engine_errors("opening a shell in the container"):
        created = api.exec_create(
            container, ["sh"], stdin=True, stdout=True, stderr=True, tty=False, environment=list(environment)
        )
        answer: Any = api.exec_start(created["Id"], tty=False, socket=True)
    # Over a unix socket and TCP docker-py gives a read-only SocketIO around the socket; over TLS the socket itself.
    pipe: socket.socket = getattr(answer, "_sock", answer)
    return Channel(pipe, keep=answer)


def _shortened(command: str) -> str:
    line = command.strip().splitlines()[0] if command.strip() else command
    return line if len(line) <= 100 and line == command.strip() else f"{line[:100]} …"


def _printed(reply: Reply) -> str | None:
    text = reply.so_far()
    return f"it had printed: {text}" if text else None
