"""Hijacking through docker-py over each kind of connection, against a few lines of HTTP."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import docker
import pytest
from docker.tls import TLSConfig

from lj_image.builders.docker.session import transport
from lj_image.errors import EngineError

VERSION = "1.41"
UPGRADED = b"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"


class Engine:
    """Accepts one connection, keeps the request, answers, then says back whatever it is told."""

    def __init__(self, listener: socket.socket, answer: bytes) -> None:
        self.listener, self.answer, self.request = listener, answer, b""
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self) -> None:
        connection, _ = self.listener.accept()
        with connection:
            while b"\r\n\r\n" not in self.request:
                self.request += connection.recv(65536)
            connection.sendall(self.answer)
            while chunk := connection.recv(65536):
                connection.sendall(chunk)


Dial = Callable[[bytes], tuple[docker.APIClient, Engine]]


@pytest.fixture(params=["unix", "tcp", "tls"])
def dial(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Dial]:
    listeners: list[socket.socket] = []

    def start(answer: bytes) -> tuple[docker.APIClient, Engine]:
        if request.param == "unix":
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(str(tmp_path / "s"))
            listener.listen()
            api = docker.APIClient(f"unix://{tmp_path}/s", version=VERSION)
        else:
            listener = socket.create_server(("127.0.0.1", 0))
            port = listener.getsockname()[1]
            tls: bool | TLSConfig = False
            if request.param == "tls":
                folder = request.getfixturevalue("certificate")
                pair = (str(folder / "cert.pem"), str(folder / "key.pem"))
                context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=pair[0])
                context.load_cert_chain(*pair)
                context.verify_mode = ssl.CERT_REQUIRED
                listener = context.wrap_socket(listener, server_side=True)
                tls = TLSConfig(client_cert=pair, ca_cert=pair[0], verify=True)
            api = docker.APIClient(f"tcp://127.0.0.1:{port}", version=VERSION, tls=tls)
            api.trust_env = False
        listeners.append(listener)
        return api, Engine(listener, answer)

    yield start
    for listener in listeners:
        listener.close()


def read(pipe: transport.SocketPipe, size: int) -> bytes:
    received, until = b"", time.monotonic() + 5
    while len(received) < size and time.monotonic() < until:
        received += pipe.recv(65536) or b""
    return received


def test_the_connection_behind_an_upgrade_carries_bytes_both_ways(dial: Dial) -> None:
    api, engine = dial(UPGRADED + b"PRI * HTTP/2.0")
    pipe = transport.hijack(api, "/session", [("X-Id", "1")])
    assert read(pipe, 14) == b"PRI * HTTP/2.0", "what http.client read ahead must not be lost"
    assert pipe.send(memoryview(b"hello")) == 5
    assert read(pipe, 5) == b"hello"
    pipe.close()
    engine.thread.join(5)
    assert not engine.thread.is_alive()


def test_a_header_may_be_sent_several_times(dial: Dial) -> None:
    api, engine = dial(UPGRADED)
    transport.hijack(api, "/session", [("X-Method", "/a/B"), ("X-Method", "/c/D")]).close()
    lines = engine.request.split(b"\r\n")
    assert lines[0] == b"POST /v1.41/session HTTP/1.1"
    assert [line for line in lines if line.lower().startswith(b"x-method")] == [b"X-Method: /a/B", b"X-Method: /c/D"]
    assert b"Upgrade: h2c" in lines


@pytest.mark.parametrize(("status", "hint"), [("400 Bad Request", False), ("404 Not Found", True)])
def test_an_engine_that_refuses_is_quoted(dial: Dial, status: str, hint: bool) -> None:
    api, _ = dial(f'HTTP/1.1 {status}\r\nContent-Length: 18\r\n\r\n{{"message":"nope"}}'.encode())
    with pytest.raises(EngineError, match="nope") as caught:
        transport.hijack(api, "/session", [])
    assert bool(caught.value.hint) is hint


def test_a_response_can_be_cut_off_while_it_is_read(dial: Dial) -> None:
    api, engine = dial(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n")
    response = api.post(transport.engine_url(api, "/build"), stream=True, timeout=None)
    threading.Timer(0.2, transport.disconnect, [response]).start()
    began = time.monotonic()
    with pytest.raises(Exception, match=r"Connection broken|IncompleteRead|Response ended"):
        list(response.raw.stream(100))
    assert time.monotonic() - began < 3
    response.close()
    transport.disconnect(response)
    engine.thread.join(5)
    assert not engine.thread.is_alive()
