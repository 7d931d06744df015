"""gRPC over HTTP/2 on one connection, as its server.

One thread owns the pipe and the HTTP/2 state; nothing else touches either. That is a matter of speed (a reader
thread and a lock cost twice the time, for handing the interpreter over) and of safety: CPython's SSLSocket must
not be read and written by two threads at once (cpython#137583). Each call runs in a thread of its own and meets
the I/O thread in its Stream's bounded buffers.
"""

from __future__ import annotations

import selectors
import socket
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings

from lj_image.builders.docker.session.pipe import BytePipe
from lj_image.builders.docker.session.stream import KIB, RpcError, Status, Stream

Method = Callable[[Stream], None]

RECEIVE_BYTES: Final = 64 * KIB
STREAM_WINDOW_BYTES: Final = 1024 * KIB
CONNECTION_WINDOW_BYTES: Final = 4096 * KIB
WRITE_AHEAD_BYTES: Final = 256 * KIB  # framed and not yet taken by the socket
JOIN_S: Final = 5.0  # a credential helper may still be running

RESPONSE_HEADERS: Final = [(":status", "200"), ("content-type", "application/grpc")]


class SessionServer:
    """Serves `methods`, by gRPC path, until the pipe ends or `close` is called.

    `replies` are paths with a constant answer, given by the I/O thread itself: BuildKit ends a session whose
    health check is late, so it must not wait for a thread or a file.
    """

    def __init__(
        self, pipe: BytePipe, methods: Mapping[str, Method], replies: Mapping[str, bytes] | None = None
    ) -> None:
        self._pipe = pipe
        self._methods = dict(methods)
        self._replies = dict(replies or {})
        self._http = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        self._streams: dict[int, Stream] = {}
        self._ready: set[Stream] = set()
        self._woken: deque[Stream] = deque()
        self._outgoing = bytearray()
        self._stopping = False
        self._doorbell, self._bell = socket.socketpair()
        self._doorbell.setblocking(False)
        self._bell.setblocking(False)
        self._thread = threading.Thread(target=self._run, name="lj-image-session", daemon=True)
        self._callers: list[threading.Thread] = []

    def start(self) -> None:
        """Greet the peer and begin to serve."""
        self._http.initiate_connection()
        self._http.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: STREAM_WINDOW_BYTES})
        self._http.increment_flow_control_window(CONNECTION_WINDOW_BYTES)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether the connection still stands."""
        return self._thread.is_alive()

    def close(self) -> None:
        """End the connection, and every call with it."""
        self._stopping = True
        self._ring()
        self._thread.join(JOIN_S)
        for caller in self._callers:
            caller.join(JOIN_S)
        self._doorbell.close()
        self._bell.close()

    def wake(self, stream: Stream) -> None:
        """Tell the I/O thread that a stream has something to send or to acknowledge; for any thread."""
        self._woken.append(stream)
        self._ring()

    def _ring(self) -> None:
        with suppress(OSError):  # full: it is awake anyway; closed: it is gone
            self._bell.send(b"!")

    # the loop

    def _run(self) -> None:
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self._doorbell, selectors.EVENT_READ)
                selector.register(self._pipe.fileno(), selectors.EVENT_READ)
                self._loop(selector)
        except (OSError, h2.exceptions.ProtocolError):
            pass  # the engine is gone or makes no sense: the build's own answer says why
        finally:
            for stream in self._streams.values():
                stream.fail(RpcError(Status.UNAVAILABLE, "the session ended"))
            self._pipe.close()

    def _loop(self, selector: selectors.BaseSelector) -> None:
        while not self._stopping:
            self._advance()
            self._write()
            readable = self._wait(selector)
            if readable and not self._read():
                return

    def _wait(self, selector: selectors.BaseSelector) -> bool:
        """Sleep until something happens; tell whether the pipe can be read."""
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._outgoing else 0)
        pipe = selector.get_key(self._pipe.fileno())
        if pipe.events != events:
            selector.modify(pipe.fileobj, events)
        pending = self._pipe.pending()
        more_to_send = bool(self._ready) and not self._outgoing
        happened = selector.select(0 if pending or more_to_send else None)
        if any(key.fileobj is self._doorbell for key, _ in happened):
            with suppress(BlockingIOError):
                self._doorbell.recv(4 * KIB)
        return pending or any(key.fd == pipe.fd and mask & selectors.EVENT_READ for key, mask in happened)

    def _read(self) -> bool:
        """Take one chunk from the pipe; False when the peer has closed it."""
        chunk = self._pipe.recv(RECEIVE_BYTES)
        if chunk is None:
            return True
        for event in self._http.receive_data(chunk):
            self._receive(event)
        return bool(chunk)

    def _write(self) -> None:
        self._outgoing += self._http.data_to_send()
        while self._outgoing:
            with memoryview(self._outgoing) as view:
                sent = self._pipe.send(view[:WRITE_AHEAD_BYTES])
            if not sent:
                return
            del self._outgoing[:sent]

    # what comes in

    def _receive(self, event: h2.events.Event) -> None:
        match event:
            case h2.events.RequestReceived():
                self._open(event)
            case h2.events.DataReceived():
                self._feed(event)
            case h2.events.StreamEnded():
                self._end_of_messages(event.stream_id)
            case h2.events.StreamReset():
                if stream := self._forget(event.stream_id):
                    stream.fail(RpcError(Status.CANCELLED, "cancelled by the engine"))
            case h2.events.WindowUpdated() | h2.events.RemoteSettingsChanged():
                self._ready.update(self._streams.values())
            case _:
                pass

    def _open(self, event: h2.events.RequestReceived) -> None:
        metadata: dict[str, list[str]] = {}
        for name, text in event.headers:
            metadata.setdefault(str(name), []).append(str(text))
        stream = Stream(event.stream_id, metadata[":path"][0], metadata, self.wake)
        self._streams[stream.number] = stream
        if stream.path not in self._replies:
            self._callers = [caller for caller in self._callers if caller.is_alive()]
            caller = threading.Thread(target=self._call, args=(stream,), name=stream.path, daemon=True)
            self._callers.append(caller)
            caller.start()

    def _feed(self, event: h2.events.DataReceived) -> None:
        stream = self._streams.get(event.stream_id)
        kept = len(event.data) if stream and stream.path not in self._replies else 0
        if stream and kept:
            stream.feed(event.data)
        self._acknowledge(event.stream_id, (event.flow_controlled_length or 0) - kept)

    def _end_of_messages(self, number: int) -> None:
        if stream := self._streams.get(number):
            stream.end_of_messages()
            if stream.path in self._replies:
                stream.send(self._replies[stream.path])
                stream.finish()

    def _acknowledge(self, number: int, size_bytes: int) -> None:
        """Give window back to the peer, so that it may send as much again."""
        if size_bytes > 0:
            self._http.acknowledge_received_data(size_bytes, number)

    # what goes out

    def _call(self, stream: Stream) -> None:
        """Run one call in its own thread."""
        failure = None
        try:
            method = self._methods.get(stream.path)
            if method is None:
                raise RpcError(Status.UNIMPLEMENTED, f"unknown method {stream.path}")
            method(stream)
        except RpcError as error:
            failure = error
        except Exception as error:  # a defect of ours must end the call, else the engine would wait forever
            failure = RpcError(Status.INTERNAL, f"{type(error).__name__}: {error}")
        stream.finish(failure)

    def _advance(self) -> None:
        """Move what streams have ready into the connection, as far as its windows allow."""
        while self._woken:
            self._ready.add(self._woken.popleft())
        for stream in tuple(self._ready):
            if stream.number not in self._streams or (len(self._outgoing) < WRITE_AHEAD_BYTES and self._send(stream)):
                self._ready.discard(stream)

    def _send(self, stream: Stream) -> bool:
        """Send what one stream has; False when it should be tried again after the next write."""
        self._acknowledge(stream.number, stream.take_consumed())
        trailers = stream.trailers()  # looked at before the bytes: nothing is added to them after it is set
        if not stream.headers_sent and (stream.outgoing_bytes() or trailers):
            self._http.send_headers(stream.number, RESPONSE_HEADERS)
            stream.headers_sent = True
        queued = 0
        while size := self._sendable(stream):
            self._http.send_data(stream.number, stream.take(size))
            queued += size
            if queued >= WRITE_AHEAD_BYTES:
                return False
        if trailers and not stream.outgoing_bytes():
            self._finish(stream, trailers)
        return True

    def _sendable(self, stream: Stream) -> int:
        window = self._http.local_flow_control_window(stream.number)
        return max(0, min(window, self._http.max_outbound_frame_size, stream.outgoing_bytes()))

    def _finish(self, stream: Stream, trailers: list[tuple[str, str]]) -> None:
        self._http.send_headers(stream.number, trailers, end_stream=True)
        self._forget(stream.number)

    def _forget(self, number: int) -> Stream | None:
        """Drop a stream, and give back the window that its unread messages hold."""
        stream = self._streams.pop(number, None)
        if stream:
            self._acknowledge(number, stream.take_unread())
        return stream
