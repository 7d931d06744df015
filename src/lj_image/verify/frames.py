"""What travels through an exec channel: the engine's frames, and our marks for where a command's output ends.

Pure: bytes in, values out; the socket is in `channel`.
"""

from __future__ import annotations

import secrets
import shlex
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

# Docker Engine API, "Attach to a container", stream format: [stream, 0, 0, 0, size1..size4], big-endian.
HEADER: Final = struct.Struct(">BxxxL")
STDOUT: Final = 1
STDERR: Final = 2
_LONGEST_STATUS: Final = 4  # `:255;`


@dataclass(frozen=True, slots=True)
class Output:
    """What a command printed, and how it ended."""

    exit_code: int
    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        """Its standard output as text, for people and comparisons; bytes that are no UTF-8 are replaced."""
        return self.stdout.decode(errors="replace")


class Demultiplexer:
    """Takes the engine's byte stream in any pieces and gives (stream, content) pairs."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._stream = 0
        self._left = 0

    def feed(self, received: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield what the received bytes complete; content is given as it comes, not held until a frame is whole."""
        self._pending += received
        while self._pending:
            if not self._left:
                if len(self._pending) < HEADER.size:
                    return
                self._stream, self._left = HEADER.unpack_from(self._pending)
                del self._pending[: HEADER.size]
                continue
            content = bytes(self._pending[: self._left])
            del self._pending[: self._left]
            self._left -= len(content)
            yield self._stream, content


def frame_command(command: bytes, token: str, stdin: str | None = None) -> bytes:
    """Return the shell text that runs a command and prints the token, with its exit code, after its output.

    The command has a shell of its own, so that `exit`, `set -e` or a syntax error end that one only.
    """
    quoted = b"sh -c " + shlex.quote(command.decode(errors="surrogateescape")).encode(errors="surrogateescape")
    if stdin is None:
        run = quoted + b" </dev/null\n"
    else:
        end = f"END-{token}"
        run = quoted + f" <<'{end}'\n{stdin}\n{end}\n".encode()
    return run + f"printf '%s:%s;' {token} $?; printf '%s;' {token} >&2\n".encode()


def new_token() -> str:
    """Return a mark that no output holds by chance."""
    return secrets.token_hex(16)


@dataclass(slots=True)
class Reply:
    """Collects the output of one framed command until both streams have shown the token."""

    token: str
    _streams: dict[int, bytearray] = field(default_factory=lambda: {STDOUT: bytearray(), STDERR: bytearray()})
    _seen: dict[int, int] = field(default_factory=lambda: {STDOUT: 0, STDERR: 0})
    """How far each stream was searched, so that a large output is searched once."""
    _ends: dict[int, int] = field(default_factory=dict)

    def add(self, stream: int, content: bytes) -> None:
        """Take a piece of output."""
        if stream not in self._streams:
            return
        self._streams[stream] += content
        if stream not in self._ends:
            self._search(stream)

    def _search(self, stream: int) -> None:
        mark = self.token.encode() + (b":" if stream == STDOUT else b";")
        text = self._streams[stream]
        at = text.find(mark, max(0, self._seen[stream] - len(mark)))
        self._seen[stream] = len(text)
        if at < 0:
            return
        if stream == STDERR or b";" in text[at + len(mark) : at + len(mark) + _LONGEST_STATUS]:
            self._ends[stream] = at
        else:
            self._seen[stream] = at  # the exit code is still on its way

    def complete(self) -> bool:
        """Say whether the command has ended."""
        return len(self._ends) == len(self._streams)

    def output(self) -> Output:
        """Return what the command printed; only when complete."""
        out, err = self._streams[STDOUT], self._streams[STDERR]
        status = bytes(out[self._ends[STDOUT] + len(self.token) + 1 :]).partition(b";")[0]
        return Output(int(status), bytes(out[: self._ends[STDOUT]]), bytes(err[: self._ends[STDERR]]))

    def so_far(self) -> str:
        """Return the last lines printed, for a message about a command that did not end."""
        text = (self._streams[STDERR] or self._streams[STDOUT])[-500:].decode(errors="replace").strip()
        return text.replace(self.token, "")
