from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping

import pytest
from session_peer import Peer, Serve

from lj_image.builders.docker.session.pipe import SocketPipe
from lj_image.builders.docker.session.server import Method, SessionServer


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start a server for some methods and return the client connected to it."""
    running: list[tuple[SessionServer, Peer]] = []

    def start(methods: Mapping[str, Method], replies: Mapping[str, bytes] | None = None) -> Peer:
        ours, theirs = socket.socketpair()
        server = SessionServer(SocketPipe(ours), methods, replies)
        server.start()
        peer = Peer(theirs)
        running.append((server, peer))
        return peer

    yield start
    for server, peer in running:
        server.close()
        peer.sock.close()
