from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

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


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("openssl"):
        pytest.skip("openssl makes the certificate")
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    return folder
