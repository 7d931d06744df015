"""The other side of a session: a gRPC client such as BuildKit is, over one end of a socket pair."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

import h2.connection
import h2.events

PATIENCE_S = 10


@dataclass
class Call:
    """What has come back for one call so far."""

    number: int
    raw: bytearray = field(default_factory=bytearray)
    headers: dict[str, str] = field(default_factory=dict)
    trailers: dict[str, str] = field(default_factory=dict)
    ended: bool = False

    @property
    def status(self) -> int:
        return int(self.trailers["grpc-status"])

    @property
    def error(self) -> str:
        return unquote(self.trailers.get("grpc-message", ""))

    def messages(self) -> list[bytes]:
        found, at = [], 0
        while at + 5 <= len(self.raw):
            (size,) = struct.unpack_from(">I", self.raw, at + 1)
            if at + 5 + size > len(self.raw):
                break
            found.append(bytes(self.raw[at + 5 : at + 5 + size]))
            at += 5 + size
        return found


class Peer:
    """A blocking client; `acknowledge` decides whether it gives window back for what it receives."""

    def __init__(self, sock: socket.socket) -> None:
        sock.settimeout(PATIENCE_S)
        self.sock = sock
        self.acknowledge = True
        self.http = h2.connection.H2Connection()
        self.http.initiate_connection()
        self.calls: dict[int, Call] = {}
        self.flush()

    def flush(self) -> None:
        self.sock.sendall(self.http.data_to_send())

    def open(self, path: str, metadata: Sequence[tuple[str, str]] = ()) -> Call:
        number = self.http.get_next_available_stream_id()
        pseudo = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost")]
        self.http.send_headers(number, [*pseudo, ("content-type", "application/grpc"), *metadata])
        self.flush()
        return self.calls.setdefault(number, Call(number))

    def send(self, call: Call, message: bytes, *, end: bool = False) -> None:
        self.send_raw(call, struct.pack(">BI", 0, len(message)) + message, end=end)

    def send_raw(self, call: Call, chunk: bytes, *, end: bool = False) -> None:
        while chunk or end:
            self.wait(lambda: self.http.local_flow_control_window(call.number) > 0)
            size = min(self.http.local_flow_control_window(call.number), self.http.max_outbound_frame_size)
            self.http.send_data(call.number, chunk[:size], end_stream=end and size >= len(chunk))
            end, chunk = end and size < len(chunk), chunk[size:]
            self.flush()

    def unary(self, path: str, message: bytes = b"") -> Call:
        call = self.open(path)
        self.send(call, message, end=True)
        return self.finish(call)

    def finish(self, call: Call) -> Call:
        self.wait(lambda: call.ended)
        return call

    def wait(self, until: Callable[[], bool]) -> None:
        while not until():
            self.receive()

    def receive(self) -> None:
        chunk = self.sock.recv(65536)
        if not chunk:
            raise EOFError("the server closed the connection")
        for event in self.http.receive_data(chunk):
            self._note(event)
        self.flush()

    def _note(self, event: h2.events.Event) -> None:
        match event:
            case h2.events.ResponseReceived():
                self.calls[event.stream_id].headers = {str(k): str(v) for k, v in _text(event.headers)}
            case h2.events.TrailersReceived():
                self.calls[event.stream_id].trailers = {str(k): str(v) for k, v in _text(event.headers)}
            case h2.events.DataReceived():
                self.calls[event.stream_id].raw += event.data
                if self.acknowledge:
                    self.http.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            case h2.events.StreamEnded():
                self.calls[event.stream_id].ended = True


def _text(headers: Sequence[tuple[bytes, bytes]]) -> Iterator[tuple[str, str]]:
    for name, text in headers:
        yield bytes(name).decode(), bytes(text).decode()


Serve = Callable[..., Peer]
