"""Logins, redirects, certificates and proxies against a real registry, with faults in between."""

from __future__ import annotations

import http.server
import logging
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lj_image.config import Config, ConfigFile, RegistryConfig
from lj_image.errors import LjImageError, PublishError
from lj_image.oci.capabilities import Capabilities
from lj_image.oci.descriptor import Descriptor
from lj_image.oci.digest import Digest
from lj_image.oci.media_types import MediaType
from lj_image.registry.access import Access, Patience
from lj_image.registry.client import Registry
from lj_image.registry.configured import registry_at
from lj_image.registry.connection import CutOff
from lj_image.registry.credentials import Credentials
from lj_image.registry.faults import RegistryError
from lj_image.registry.uploading.upload import bring_blob
from standins.faults import Faulty, faulty
from standins.registries import free_port, running
from standins.tls_registry import Certificates, certificates, running_with_tls

SIZE, CHUNK = 6_000_000, 1_000_000
SECRET = "hush-hush"
LOGIN = Credentials("robot", SECRET)
QUICK = Patience(attempts=3, longest_wait_s=5, connect_s=2, idle_s=20)
Send = Callable[..., str]


class Body:
    def __init__(self, seed: int) -> None:
        self.content = bytes([seed]) + os.urandom(SIZE - 1)
        self.descriptor = Descriptor(MediaType.OCI_LAYER, Digest.of(self.content), SIZE)

    def pieces(self, start: int, end: int) -> Iterator[bytes]:
        for at in range(start, end, 65_536):
            yield self.content[at : min(at + 65_536, end)]


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running(tmp_path_factory.mktemp("registry")) as registry:
        yield registry.address


def opened(host: str, login: Credentials | None = None, patience: Patience = QUICK, **way: Any) -> Registry:
    return Registry(
        Access(host, patience=patience, **way),
        intent="push",
        capabilities=Capabilities(upload="chunks", chunk_bytes=CHUNK),
        credentials=lambda _: login,
    )


def arrives(proxy: Faulty, login: Credentials | None = None, **options: Any) -> Body:
    """Send a blob through a proxy, and hold what came out against it."""
    body = Body(1)
    with opened(proxy.address, login) as registry:
        bring_blob(registry, "team/x", body, **options)
        with registry.open_blob("team/x", body.descriptor) as stream:
            assert stream.read(SIZE + 1) == body.content
    return body


# --- logins ---


@pytest.mark.parametrize(
    ("faults", "renewals"),
    [
        (("token:300", "expire-token:2500000"), 2),
        (("token:300", "expire-token:1500000:3"), 4),
        (("token:1", "token-claims:300", "slow:2000000"), 6),  # whose end the service does not tell
        (("token:2", "slow:2000000"), 4),
    ],
)
def test_a_login_that_ends_during_an_upload_is_renewed_and_at_most_a_chunk_goes_again(
    upstream: str, faults: tuple[str, ...], renewals: int
) -> None:
    with faulty(upstream, *faults, user=f"robot:{SECRET}") as proxy:
        arrives(proxy, LOGIN)
        assert proxy.received_bytes <= SIZE + CHUNK * (renewals - 1)
        assert 2 <= len(proxy.requests("token-get")) <= renewals
        assert len(proxy.requests("upload-start")) <= 2  # the one that asks for a login, and the one that has it


def test_a_refused_identity_token_falls_back_to_the_password(upstream: str) -> None:
    with faulty(upstream, "token:300", "refresh-refused:0", user=f"robot:{SECRET}") as proxy:
        arrives(proxy, Credentials("robot", SECRET, "identity"))
        assert len(proxy.requests("token-post")) == 1


def test_a_refused_identity_token_alone_is_an_error_without_secrets(upstream: str) -> None:
    with (
        faulty(upstream, "token:300", "refresh-refused:0") as proxy,
        opened(proxy.address, Credentials("", "", SECRET)) as registry,
        pytest.raises(RegistryError, match="refuses the login") as raised,
    ):
        bring_blob(registry, "team/x", Body(1))
    assert proxy.address in raised.value.message
    assert SECRET not in f"{raised.value.lines()} {raised.value!r}"
    assert raised.value.hint == f"run: docker login {proxy.address}"


def test_of_two_scopes_the_first_alone_is_granted_and_the_blob_is_sent(upstream: str) -> None:
    body = Body(2)
    with opened(upstream) as registry:
        bring_blob(registry, "team/origin", body)
    with (
        faulty(upstream, "token:300", "token-first-scope") as proxy,
        opened(proxy.address) as registry,
    ):
        found = bring_blob(registry, "team/y", body, origin=f"{proxy.address}/team/origin")
        assert found.way == "sent"
        assert proxy.received_bytes == SIZE


def test_a_wrong_password_is_tried_once_by_all_threads_together(upstream: str) -> None:
    with (
        faulty(upstream, "token:300", user="robot:another") as proxy,
        opened(proxy.address, LOGIN) as registry,
    ):
        failures: list[LjImageError] = []

        def work() -> None:
            with pytest.raises(RegistryError) as raised:
                bring_blob(registry, "team/x", Body(1))
            failures.append(raised.value)

        started = time.monotonic()
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert time.monotonic() - started < 10
        assert len(failures) == 8
        # By GET; a service that knows no such form would be asked by POST.
        assert len(proxy.requests("token-get") + proxy.requests("token-post")) <= 2
        assert all(SECRET not in f"{failure.lines()}" for failure in failures)


@pytest.mark.parametrize("faults", [("status:401:1:blob-head",), ("status:401:0:blob-head", "token:300")])
def test_a_registry_that_refuses_the_question_may_take_the_blob(upstream: str, faults: tuple[str, ...]) -> None:
    body = Body(3)
    with faulty(upstream, *faults) as proxy, opened(proxy.address) as registry:
        assert bring_blob(registry, "team/x", body).way == "sent"
        assert proxy.received_bytes == SIZE


def test_many_threads_ask_for_one_login(upstream: str) -> None:
    with (
        faulty(upstream, "token:300", "delay:0.3:0:token-get", user=f"robot:{SECRET}") as proxy,
        opened(proxy.address, LOGIN) as registry,
    ):
        bodies = [Body(number) for number in range(8)]
        threads = [threading.Thread(target=bring_blob, args=(registry, "team/x", body)) for body in bodies]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(registry.has_blob("team/x", body.descriptor.digest) for body in bodies)
        assert len(proxy.requests("token-get")) == 1


# --- where a registry leads ---


def test_no_login_follows_an_upload_to_another_port(upstream: str) -> None:
    with faulty(upstream, "token:300", "foreign-location", user=f"robot:{SECRET}") as proxy:
        arrives(proxy, LOGIN)
        assert proxy.totals["authorization_leaks"] == 0


class Leading(http.server.BaseHTTPRequestHandler):
    """Answers everything with a redirect to a registry; reads what it is sent, as a server should."""

    protocol_version = "HTTP/1.1"

    def __init__(self, target: str, status: int, seen: list[tuple[str, str]], *others: Any) -> None:
        self.target, self.status, self.seen = target, status, seen
        super().__init__(*others)

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.seen.append((self.command, self.headers.get("Authorization", "")))
        self.send_response(self.status)
        self.send_header("Location", f"http://{self.target}{self.path}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_HEAD = do_POST = do_PATCH = do_PUT = do_DELETE = answer

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing."""


@contextmanager
def serving(handler: Callable[..., http.server.BaseHTTPRequestHandler]) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)  # type: ignore[arg-type]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_are_followed_by_every_method_with_its_body(upstream: str, status: int) -> None:
    seen: list[tuple[str, str]] = []
    body, manifest = Body(4), b'{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json"}'
    with serving(partial(Leading, upstream, status, seen)) as host, opened(host) as registry:
        bring_blob(registry, "team/led", body)
        manifest = b'{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}'
        digest = registry.put_manifest("team/led", "1", manifest, MediaType.OCI_INDEX)
        assert registry.manifest("team/led", "1").descriptor.digest == digest
        scopes = registry.scopes("team/led")
        begun = registry.connection.ask("POST", "team/led/blobs/uploads/", scopes, "upload")
        location = registry.connection.location(begun)
        assert location is not None
        # The upload's Location is the registry's own: through the redirect once more, with a large body.
        url = location.replace(upstream.replace("localhost", "127.0.0.1"), host).replace(upstream, host)
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(SIZE)}
        patched = registry.connection.send_body(
            "PATCH", url, scopes, "blob", lambda: body.pieces(0, SIZE), headers=headers
        )
        assert patched.headers["Range"] == f"0-{SIZE - 1}"
    assert {"HEAD", "GET", "POST", "PUT", "PATCH"} <= {method for method, _ in seen}


# --- what is told ---


@pytest.mark.parametrize("status", [413, 403, 415])
def test_a_refusal_while_a_body_is_sent_is_told_as_it_is(upstream: str, status: int) -> None:
    body = Body(5)
    with faulty(upstream, f"status:{status}:1:upload-patch") as proxy, opened(proxy.address) as registry:
        scopes, connection = registry.scopes("team/x"), registry.connection
        location = connection.location(connection.ask("POST", "team/x/blobs/uploads/", scopes, "upload"))
        assert location is not None
        headers = {"Content-Length": str(SIZE)}
        answer = connection.send_body("PATCH", location, scopes, "blob", lambda: body.pieces(0, SIZE), headers=headers)
        assert answer.status_code == status


def test_a_wait_that_is_asked_for_holds_every_thread(upstream: str) -> None:
    with faulty(upstream, "too-many:2:1") as proxy, opened(proxy.address) as registry:
        registry.has_blob("team/x", Digest.of(b"first"))
        assert proxy.totals["early_retries"] == 0
    with faulty(upstream, "too-many:1:2:blob-head") as proxy, opened(proxy.address) as registry:
        started = time.monotonic()
        first = threading.Thread(target=registry.has_blob, args=("team/x", Digest.of(b"1")))
        first.start()
        while not proxy.requests("blob-head"):
            time.sleep(0.02)
        time.sleep(0.2)
        registry.head("team/x", "1")
        first.join()
        assert time.monotonic() - started > 1
        assert proxy.totals["early_retries"] == 0


def test_a_registry_that_is_down_fails_in_bounded_time_and_says_why() -> None:
    gone = f"127.0.0.1:{free_port()}"
    started = time.monotonic()
    with opened(gone) as registry, pytest.raises(PublishError, match="refuses the connection"):
        registry.has_blob("team/x", Digest.of(b""))
    with faulty(gone) as proxy, opened(proxy.address) as registry, pytest.raises(RegistryError) as raised:
        registry.has_blob("team/x", Digest.of(b""))
    assert raised.value.status == 502
    with opened("registry.invalid") as registry, pytest.raises(PublishError, match="cannot be found by name"):
        registry.has_blob("team/x", Digest.of(b""))
    assert time.monotonic() - started < 40


def test_plain_http_where_tls_is_expected_is_told_at_once(upstream: str) -> None:
    with opened(upstream, plain_http=False) as registry, pytest.raises(PublishError, match="does not speak https"):
        registry.has_blob("team/x", Digest.of(b""))


def test_a_deadline_ends_what_is_done_there(upstream: str) -> None:
    patience, body = Patience(attempts=50, deadline_s=2), Body(6)
    with faulty(upstream, "slow:1000000") as proxy:
        started = time.monotonic()
        with opened(proxy.address, patience=patience) as registry, pytest.raises(PublishError, match="not done within"):
            bring_blob(registry, "team/x", body)
        assert 1.5 < time.monotonic() - started < 6


@pytest.mark.parametrize("fault", ["stall:100000:60:0", "delay:60:0:blob-head", "too-many:60:0:blob-head"])
def test_cutting_off_ends_every_wait_at_once(upstream: str, fault: str) -> None:
    with faulty(upstream, fault) as proxy, opened(proxy.address) as registry:
        ended: list[type[BaseException]] = []

        def work() -> None:
            try:
                bring_blob(registry, "team/x", Body(7))
            except BaseException as error:
                ended.append(type(error))

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(1)
        started = time.monotonic()
        registry.connection.cut_off()
        for thread in threads:
            thread.join(10)
        assert time.monotonic() - started < 1
        assert ended == [CutOff] * 3


def test_cutting_off_ends_the_wait_for_a_host_that_takes_no_packet() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        port = full.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for sock in waiting:  # what does not fit into the backlog is never answered
            sock.setblocking(False)
            sock.connect_ex(("127.0.0.1", port))
        started, digest = time.monotonic(), Digest.of(b"")
        with opened(f"127.0.0.1:{port}", patience=Patience(connect_s=30)) as registry:
            threading.Timer(0.5, registry.connection.cut_off).start()
            with pytest.raises(CutOff):
                registry.has_blob("team/x", digest)
        assert time.monotonic() - started < 2
        for sock in waiting:
            sock.close()


# --- certificates ---


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates(tmp_path_factory.mktemp("certificates"))


def by_config(host: str, **said: Any) -> Registry:
    values = ConfigFile(registries={host: RegistryConfig(plain_http=False, **said)})
    return registry_at(host, Config(None, values, Path()), intent="push", patience=QUICK)


def test_a_ca_of_ones_own_is_trusted_where_the_config_says_so(made: Certificates, tmp_path: Path) -> None:
    absent = Digest.of(b"absent")
    with running_with_tls(tmp_path, made) as host:
        with by_config(host, ca_bundle=str(made.ca)) as registry:
            assert not registry.has_blob("team/x", absent)
        started = time.monotonic()
        with by_config(host) as registry, pytest.raises(PublishError, match="not trusted here") as raised:
            registry.has_blob("team/x", absent)
        assert time.monotonic() - started < 3  # and is not tried again
        assert "ca_bundle" in (raised.value.hint or "")
        elsewhere = Access(host.replace("localhost", "127.0.0.2"), plain_http=False, ca_bundle=made.ca, patience=QUICK)
        with Registry(elsewhere) as registry, pytest.raises(PublishError, match=r"not trusted here|refuses the conn"):
            registry.has_blob("team/x", absent)


def test_a_client_shows_its_certificate(made: Certificates, tmp_path: Path) -> None:
    absent = Digest.of(b"absent")
    ours = {"client_certificate": str(made.client), "client_key": str(made.client.with_suffix(".key"))}
    with running_with_tls(tmp_path, made, wants_client=True) as host:
        with by_config(host, ca_bundle=str(made.ca), **ours) as registry:
            assert not registry.has_blob("team/x", absent)
        with by_config(host, ca_bundle=str(made.ca)) as registry, pytest.raises(PublishError) as raised:
            registry.has_blob("team/x", absent)
        assert "client certificate" in raised.value.message


# --- proxies ---


class Proxying(Leading):
    """Answers whatever is asked of it as a proxy, by itself."""

    def answer(self) -> None:
        self.seen.append((self.command, self.path))
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_CONNECT = answer


def test_proxies_lead_to_registries_but_not_to_this_machine(upstream: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, str]] = []
    digest = Digest.of(b"absent")
    with serving(partial(Proxying, "", 404, seen)) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"):
            monkeypatch.setenv(name, f"http://{proxy}")
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        with opened(upstream) as registry:
            registry.has_blob("team/x", digest)
        assert seen == []
        with opened("registry.invalid:5000", plain_http=True) as registry:
            registry.has_blob("team/x", digest)
        assert seen == [("HEAD", f"http://registry.invalid:5000/v2/team/x/blobs/{digest}")]
        with opened("registry.invalid") as registry, pytest.raises(PublishError, match="the proxy does not lead to"):
            registry.has_blob("team/x", digest)
        assert ("CONNECT", "registry.invalid:443") in seen
        monkeypatch.setenv("NO_PROXY", "registry.invalid")
        with opened("registry.invalid") as registry, pytest.raises(PublishError, match="cannot be found by name"):
            registry.has_blob("team/x", digest)


def test_cutting_off_ends_a_wait_behind_a_proxy(made: Certificates, monkeypatch: pytest.MonkeyPatch) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.folder / "server.pem", made.folder / "server.key")

    class Silent(http.server.BaseHTTPRequestHandler):
        """Leads to a registry that never answers, which it is itself."""

        def do_CONNECT(self) -> None:
            self.send_response(200)
            self.end_headers()
            with suppress(OSError), context.wrap_socket(self.connection, server_side=True) as secured:
                while secured.recv(1024):
                    pass

    with serving(Silent) as proxy:
        for name in ("HTTPS_PROXY", "https_proxy"):
            monkeypatch.setenv(name, f"http://{proxy}")
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        started = time.monotonic()
        with opened("registry.invalid", ca_bundle=made.ca) as registry:
            threading.Timer(0.5, registry.connection.cut_off).start()
            with pytest.raises(CutOff):
                registry.has_blob("team/x", Digest.of(b"absent"))
        assert time.monotonic() - started < 5


# --- secrets ---


def test_no_log_line_and_no_error_holds_a_secret(upstream: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with faulty(upstream, "token:300", "expire-token:1000000", user=f"robot:{SECRET}") as proxy:
        arrives(proxy, LOGIN)
        with opened(proxy.address, LOGIN) as registry:
            begun = registry.connection.ask("POST", "team/x/blobs/uploads/", registry.scopes("team/x"), "upload")
            location = registry.connection.location(begun) or ""
            with pytest.raises(RegistryError) as raised:
                registry.connection.ask("PATCH", f"{location}x", registry.scopes("team/x"), "upload", content=b"x")
    told = f"{caplog.text} {raised.value!r} {raised.value.lines()}"
    assert "_state" in location
    for hidden in (SECRET, "cm9ib3Q6aHVzaC1odXNo", "Bearer ", "_state=", location.partition("uploads/")[2][:36]):
        assert hidden not in told
