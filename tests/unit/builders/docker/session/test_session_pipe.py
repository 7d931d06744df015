from __future__ import annotations

import selectors
import socket

from lj_image.builders.docker.session.pipe import SocketPipe


def test_bytes_read_ahead_come_first_and_are_pending() -> None:
    ours, theirs = socket.socketpair()
    pipe = SocketPipe(ours, b"PRI * HTTP")
    theirs.send(b"/2.0")
    assert pipe.pending()
    assert pipe.recv(3) == b"PRI"
    assert pipe.recv(99) == b" * HTTP"
    assert not pipe.pending()
    assert pipe.recv(99) == b"/2.0"


def test_nothing_to_read_is_none_and_a_closed_peer_is_empty() -> None:
    ours, theirs = socket.socketpair()
    pipe = SocketPipe(ours)
    assert pipe.recv(10) is None
    theirs.close()
    assert pipe.recv(10) == b""


def test_a_full_socket_takes_nothing_instead_of_blocking() -> None:
    ours, theirs = socket.socketpair()
    pipe = SocketPipe(ours)
    chunk = memoryview(bytes(1 << 20))
    while pipe.send(chunk):
        pass
    assert pipe.send(chunk) == 0
    theirs.close()


def test_closing_wakes_whoever_waits_and_may_be_repeated() -> None:
    ours, theirs = socket.socketpair()
    pipe = SocketPipe(ours)
    with selectors.DefaultSelector() as selector:
        selector.register(theirs, selectors.EVENT_READ)
        pipe.close()
        pipe.close()
        assert selector.select(1)
    assert pipe.fileno() == -1
