"""The relay between sockets and pipes of this process; no engine."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lj_image.builders.docker.relay import Relay, Streams


class Ends:
    """Pipes for our side, and the container's end of the socket."""

    def __init__(self) -> None:
        self.stdin, self.typed = os.pipe()
        self.shown, self.stdout = os.pipe()
        self.complained, self.stderr = os.pipe()
        self.container, self.ours = socket.socketpair()
        self.container.settimeout(10)

    def relay(self, *, framed: bool) -> threading.Thread:
        relay = Relay(self.ours, Streams(self.stdin, self.stdout, self.stderr), framed=framed)
        thread = threading.Thread(target=relay.run, daemon=True)
        thread.start()
        return thread

    def close(self) -> None:
        for descriptor in (self.stdin, self.typed, self.shown, self.stdout, self.complained, self.stderr):
            try:
                os.close(descriptor)
            except OSError:
                continue
        self.container.close()
        self.ours.close()


@pytest.fixture
def ends() -> Iterator[Ends]:
    found = Ends()
    yield found
    found.close()


def frame(stream: int, content: bytes) -> bytes:
    """Docker Engine API, "Attach to a container", stream format."""
    return struct.pack(">BxxxL", stream, len(content)) + content


def received_until_end(sock: socket.socket) -> bytes:
    return b"".join(iter(lambda: sock.recv(65536), b""))


def test_output_and_errors_are_told_apart(ends: Ends) -> None:
    thread = ends.relay(framed=True)
    ends.container.sendall(frame(1, b"out") + frame(2, b"err")[:5])
    ends.container.sendall(frame(2, b"err")[5:])
    ends.container.close()
    thread.join(10)
    assert not thread.is_alive()
    assert os.read(ends.shown, 99) == b"out"
    assert os.read(ends.complained, 99) == b"err"


def test_a_terminals_bytes_pass_as_they_are(ends: Ends) -> None:
    thread = ends.relay(framed=False)
    ends.container.sendall(b"\x1b[2Jwords")
    ends.container.close()
    thread.join(10)
    assert os.read(ends.shown, 99) == b"\x1b[2Jwords"


def test_the_end_of_input_is_passed_on_and_what_comes_after_it_is_shown(ends: Ends) -> None:
    thread = ends.relay(framed=False)
    os.write(ends.typed, b"question")
    os.close(ends.typed)
    assert received_until_end(ends.container) == b"question"
    ends.container.sendall(b"answer")
    ends.container.close()
    thread.join(10)
    assert os.read(ends.shown, 99) == b"answer"


def test_more_input_than_any_buffer_holds_does_not_stop_the_output(ends: Ends) -> None:
    """A container that prints before it reads on: `cat` of a large file."""
    size = 4 * 1024 * 1024
    thread = ends.relay(framed=False)
    writer = threading.Thread(target=lambda: (_write_all(ends.typed, b"x" * size), os.close(ends.typed)), daemon=True)
    reader = _Collector(ends.shown)
    writer.start()
    echoed = 0
    while chunk := ends.container.recv(65536):
        ends.container.sendall(chunk)
        echoed += len(chunk)
    ends.container.close()
    thread.join(10)
    os.close(ends.stdout)
    assert (echoed, reader.result()) == (size, size)


def test_a_container_that_closes_its_input_ends_nothing(ends: Ends) -> None:
    thread = ends.relay(framed=False)
    ends.container.shutdown(socket.SHUT_RD)
    os.write(ends.typed, b"nobody reads this")
    os.write(ends.typed, b"nor this")
    ends.container.sendall(b"still here")
    assert os.read(ends.shown, 99) == b"still here"
    ends.container.close()
    thread.join(10)
    assert not thread.is_alive()


def test_a_plain_file_is_an_input_too(ends: Ends, tmp_path: Path) -> None:
    (tmp_path / "script").write_bytes(b"exit 3\n")
    with (tmp_path / "script").open("rb") as file:
        relay = Relay(ends.ours, Streams(file.fileno(), ends.stdout, ends.stderr), framed=False)
        thread = threading.Thread(target=relay.run, daemon=True)
        thread.start()
        assert received_until_end(ends.container) == b"exit 3\n"
        ends.container.close()
        thread.join(10)


def test_a_change_of_size_is_noticed_while_nothing_else_happens(ends: Ends) -> None:
    changed, change = os.pipe()
    noticed = threading.Event()
    relay = Relay(ends.ours, Streams(ends.stdin, ends.stdout, ends.stderr), framed=False)
    thread = threading.Thread(target=relay.run, args=(changed, noticed.set), daemon=True)
    thread.start()
    os.write(change, b"\0")
    assert noticed.wait(10)
    ends.container.close()
    thread.join(10)
    os.close(changed)
    os.close(change)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a certificate and its key, made now."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "cert.pem", folder / "key.pem"
    wishes = ("-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=engine")
    command = ["openssl", "req", *wishes, "-out", str(certificate), "-keyout", str(key)]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key


def test_over_tls_nothing_stays_in_its_own_buffer(ends: Ends, certificate: tuple[Path, Path]) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(*certificate)
    client = ssl.create_default_context(cafile=str(certificate[0]))
    client.check_hostname = False
    answering = threading.Thread(target=_echo, args=(server, ends.container), daemon=True)
    answering.start()
    ends.ours = client.wrap_socket(ends.ours)
    thread = ends.relay(framed=False)
    reader = _Collector(ends.shown)
    _write_all(ends.typed, b"x" * 300_000 + b"\n")
    thread.join(10)
    os.close(ends.stdout)
    assert not thread.is_alive()
    assert reader.result() == 300_001


def _echo(context: ssl.SSLContext, sock: socket.socket) -> None:
    """Read a line, send it back in records of the largest size, and end."""
    with context.wrap_socket(sock, server_side=True) as tls:
        line = b""
        while not line.endswith(b"\n"):
            line += tls.recv(65536)
        tls.sendall(line)


def test_a_container_without_input_is_given_none(ends: Ends) -> None:
    relay = Relay(ends.ours, Streams(None, ends.stdout, ends.stderr), framed=False)
    thread = threading.Thread(target=relay.run, daemon=True)
    thread.start()
    os.write(ends.typed, b"ignored")
    ends.container.sendall(b"out")
    assert os.read(ends.shown, 99) == b"out"
    ends.container.close()
    thread.join(10)
    assert not thread.is_alive()


def _write_all(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]


class _Collector:
    """Counts what comes out of a pipe."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._count = descriptor, 0
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        while chunk := os.read(self._descriptor, 65536):
            self._count += len(chunk)

    def result(self) -> int:
        self._thread.join(10)
        return self._count
