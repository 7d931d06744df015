from __future__ import annotations

import socket
import ssl
import threading
import time
from pathlib import Path

import pytest
from session_peer import Peer, Serve

from lj_image.builders.docker.session.pipe import SocketPipe
from lj_image.builders.docker.session.server import SessionServer
from lj_image.builders.docker.session.stream import RpcError, Status, Stream

MIB = 1024 * 1024


def echo(stream: Stream) -> None:
    while (message := stream.recv()) is not None:
        stream.send(message)


def test_messages_come_back_in_order_with_status_ok(serve: Serve) -> None:
    peer = serve({"/echo": echo})
    call = peer.open("/echo")
    for number in range(1000):
        peer.send(call, b"%d" % number)
    peer.send(call, b"last", end=True)
    peer.finish(call)
    assert call.headers[":status"] == "200"
    assert call.headers["content-type"] == "application/grpc"
    assert call.status == Status.OK
    assert call.messages() == [*(b"%d" % number for number in range(1000)), b"last"]


def test_a_message_cut_anywhere_is_one_message(serve: Serve) -> None:
    peer = serve({"/echo": echo})
    call = peer.open("/echo")
    for byte in b"\0\0\0\0\5hello":
        peer.send_raw(call, bytes([byte]))
    peer.send_raw(call, b"", end=True)
    assert peer.finish(call).messages() == [b"hello"]


def test_an_unknown_method_is_unimplemented(serve: Serve) -> None:
    call = serve({}).unary("/moby.filesync.v1.Auth/GetTokenAuthority")
    assert call.status == 12
    assert "GetTokenAuthority" in call.error


def test_an_error_text_survives_characters_that_headers_do_not(serve: Serve) -> None:
    def fail(stream: Stream) -> None:
        raise RpcError(Status.NOT_FOUND, "secret „é“ 100% weg\n")

    call = serve({"/fail": fail}).unary("/fail")
    assert (call.status, call.error) == (5, "secret „é“ 100% weg\n")


def test_a_defect_in_a_method_ends_its_call_and_no_other(serve: Serve) -> None:
    def broken(stream: Stream) -> None:
        raise ZeroDivisionError("oops")

    peer = serve({"/broken": broken, "/echo": echo})
    assert peer.unary("/broken").status == Status.INTERNAL
    assert peer.unary("/echo", b"still here").messages() == [b"still here"]


def test_repeated_headers_are_kept_in_order(serve: Serve) -> None:
    seen: list[list[str]] = []

    def look(stream: Stream) -> None:
        seen.append(list(stream.metadata["exclude-patterns"]))

    peer = serve({"/look": look})
    call = peer.open("/look", [("exclude-patterns", "ä*"), ("exclude-patterns", "!b")])
    peer.send(call, b"", end=True)
    peer.finish(call)
    assert seen == [["ä*", "!b"]]


def test_health_is_answered_while_every_method_is_busy(serve: Serve) -> None:
    release = threading.Event()
    peer = serve({"/slow": lambda stream: release.wait(5) and None}, {"/health": b"\x08\x01"})
    for _ in range(20):
        peer.open("/slow")
    began = time.monotonic()
    call = peer.unary("/health")
    release.set()
    assert call.messages() == [b"\x08\x01"]
    assert time.monotonic() - began < 1


def test_much_more_than_the_windows_hold_passes_both_ways(serve: Serve) -> None:
    def pour(stream: Stream) -> None:
        taken = 0
        while (message := stream.recv()) is not None:
            taken += len(message)
        for _ in range(64):
            stream.send(bytes(128 * 1024))
        stream.send(b"%d" % taken)

    peer = serve({"/pour": pour})
    call = peer.open("/pour")
    for _ in range(64):
        peer.send(call, bytes(128 * 1024))
    peer.send_raw(call, b"", end=True)
    peer.finish(call)
    assert len(call.raw) > 8 * MIB
    assert call.messages()[-1] == b"%d" % (8 * MIB)


def test_a_method_waits_while_the_peer_gives_no_window(serve: Serve) -> None:
    sent: list[int] = []

    def pour(stream: Stream) -> None:
        for number in range(256):
            stream.send(bytes(64 * 1024))
            sent.append(number)

    peer = serve({"/pour": pour})
    peer.acknowledge = False
    call = peer.open("/pour")
    peer.wait(lambda: len(call.raw) >= 60_000)
    time.sleep(0.2)
    assert len(sent) * 64 * 1024 < MIB, "memory must not grow with what is sent"
    peer.acknowledge = True
    peer.http.acknowledge_received_data(len(call.raw), call.number)
    peer.flush()
    peer.finish(call)
    assert len(sent) == 256


def test_a_peer_that_sends_faster_than_a_method_reads_is_held_back(serve: Serve) -> None:
    release = threading.Event()

    def slow(stream: Stream) -> None:
        release.wait(5)
        echo_size = sum(len(message) for message in iter(stream.recv, None))
        stream.send(b"%d" % echo_size)

    peer = serve({"/slow": slow})
    call = peer.open("/slow")
    peer.send(call, b"x")
    peer.wait(lambda: peer.http.remote_settings.initial_window_size == MIB)
    sent = 0
    while peer.http.local_flow_control_window(call.number) > 5 + 64 * 1024:
        peer.send(call, bytes(64 * 1024))
        sent += 64 * 1024
    assert sent < 2 * MIB
    release.set()
    peer.send(call, bytes(64 * 1024), end=True)
    assert peer.finish(call).messages() == [b"%d" % (1 + sent + 64 * 1024)]


@pytest.mark.parametrize("way", ["reset", "hang up"])
def test_a_method_in_mid_send_is_woken_when_the_peer_leaves(serve: Serve, way: str) -> None:
    ended: list[RpcError] = []
    done = threading.Event()

    def pour(stream: Stream) -> None:
        try:
            while True:
                stream.send(bytes(64 * 1024))
        except RpcError as error:
            ended.append(error)
            done.set()
            raise

    peer = serve({"/pour": pour})
    peer.acknowledge = False
    call = peer.open("/pour")
    peer.wait(lambda: len(call.raw) >= 60_000)
    if way == "reset":
        peer.http.reset_stream(call.number, 8)
        peer.flush()
    else:
        peer.sock.close()
    assert done.wait(5)
    assert ended[0].status == (Status.CANCELLED if way == "reset" else Status.UNAVAILABLE)


def test_closing_ends_waiting_methods_and_leaves_no_thread(serve: Serve) -> None:
    before = threading.active_count()
    peer = serve({"/echo": echo})
    call = peer.open("/echo")
    peer.send(call, b"one")
    peer.wait(lambda: bool(call.raw) or threading.active_count() >= before + 2)
    server = next(
        thread._target.__self__  # type: ignore[attr-defined]
        for thread in threading.enumerate()
        if thread.name == "lj-image-session"
    )
    assert isinstance(server, SessionServer)
    server.close()
    assert threading.active_count() == before


def test_nonsense_ends_the_session_and_nothing_else(serve: Serve) -> None:
    peer = serve({"/echo": echo})
    peer.sock.sendall(b"\0\0\1\0\0\0\0\0\0x")  # RFC 9113 §6.1: DATA belongs to a stream, never to number 0
    with pytest.raises((EOFError, ConnectionError)):
        peer.wait(lambda: False)


def test_tls_carries_large_messages_both_ways(certificate: Path) -> None:
    ours, theirs = socket.socketpair()
    pem, key = str(certificate / "cert.pem"), str(certificate / "key.pem")
    engine_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    engine_side.load_cert_chain(pem, key)
    our_side = ssl.create_default_context(cafile=pem)
    greeter = threading.Thread(target=lambda: wrapped.append(our_side.wrap_socket(ours, server_hostname="localhost")))
    wrapped: list[ssl.SSLSocket] = []
    greeter.start()
    peer_socket = engine_side.wrap_socket(theirs, server_side=True)
    greeter.join()
    server = SessionServer(SocketPipe(wrapped[0]), {"/echo": echo})
    server.start()
    peer = Peer(peer_socket)
    call = peer.open("/echo")
    for _ in range(32):
        peer.send(call, bytes(64 * 1024))
    peer.send_raw(call, b"", end=True)
    assert len(peer.finish(call).messages()) == 32
    server.close()
    peer_socket.close()
