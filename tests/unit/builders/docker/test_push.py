"""Streams and words here were recorded from Engine 20.10.24 and 26.1.5, with both of the latter's image stores."""

from __future__ import annotations

import io
import json
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import docker
import pytest
from rich.console import Console

from lj_image.builders.docker.credentials import credentials_for
from lj_image.builders.docker.push import read_stream, remote_digest
from lj_image.builders.docker.push_faults import explain
from lj_image.builders.docker.push_progress import LayerPush, NoProgress, PlainProgress, PushProgress, RichProgress
from lj_image.errors import EngineError, LjImageError, PublishError

DIGEST = "sha256:dc093e06b5894f86013ebc311ef1c88500c8a10526ae329be2550e69e957ec87"
PLACE = "127.0.0.1:59245/egs/x:t"
REFERS = {"status": "The push refers to repository [127.0.0.1:59245/egs/x]"}
PREPARING = {"status": "Preparing", "progressDetail": {}, "id": "455576075579"}
PUSHING = {
    "status": "Pushing",
    "progressDetail": {"current": 512, "total": 3000},
    "progress": "[=>",
    "id": "455576075579",
}
PUSHED = {"status": "Pushed", "progressDetail": {}, "id": "455576075579"}
STATUS_DIGEST = {"status": f"t: digest: {DIGEST} size: 524"}
AUX = {"progressDetail": {}, "aux": {"Tag": "t", "Digest": DIGEST, "Size": 524}}
DENIED = {
    "errorDetail": {"message": "denied: requested access to the resource is denied"},
    "error": "denied: requested access to the resource is denied",
}
RESET = {
    "errorDetail": {"message": "write tcp: connection reset by peer"},
    "error": "write tcp: connection reset by peer",
}

CLASSIC = (REFERS, PREPARING, PUSHING, PUSHED, STATUS_DIGEST, AUX)
CONTAINERD = (
    REFERS,
    {"status": "Layer already exists", "progressDetail": {}, "id": "5afa6b76ec74"},
    STATUS_DIGEST,
)


class Watch(NoProgress):
    def __init__(self) -> None:
        self.layers: list[LayerPush] = []

    def layer(self, layer: LayerPush) -> None:
        self.layers.append(layer)


def read(*messages: dict[str, Any], progress: PushProgress | None = None) -> str:
    return read_stream(messages, PLACE, progress or NoProgress())


@pytest.mark.parametrize("stream", [CLASSIC, CONTAINERD], ids=["classic store", "containerd store, which sends no aux"])
def test_a_stream_that_went_well_gives_its_digest(stream: Iterable[dict[str, Any]]) -> None:
    assert read(*stream) == DIGEST


@pytest.mark.parametrize(
    "stream",
    [
        (REFERS, PREPARING, DENIED),
        (REFERS, DENIED, PREPARING, PUSHED, STATUS_DIGEST, AUX),
        (*CLASSIC, DENIED),
        (REFERS, {"error": DENIED["error"]}),
        (REFERS, {"errorDetail": DENIED["errorDetail"]}),
    ],
    ids=["last", "in the middle, then a digest", "after the digest", "without detail", "with detail alone"],
)
def test_an_error_anywhere_fails_in_the_registrys_words(stream: Iterable[dict[str, Any]]) -> None:
    with pytest.raises(PublishError, match="requested access to the resource is denied"):
        read(*stream)


def test_several_errors_are_all_told_and_each_once() -> None:
    with pytest.raises(PublishError) as caught:
        read(REFERS, RESET, RESET, {"error": "blob upload unknown"})
    assert caught.value.message.count("connection reset by peer") == 1
    assert "blob upload unknown" in caught.value.message


@pytest.mark.parametrize("error", [{"error": ""}, {"errorDetail": {}}, {"errorDetail": None}])
def test_an_error_without_words_is_an_error(error: dict[str, Any]) -> None:
    with pytest.raises(PublishError, match="without words"):
        read(*CLASSIC, error)


@pytest.mark.parametrize("stream", [(), (REFERS, PREPARING, PUSHING, PUSHED)], ids=["empty", "cut off"])
def test_a_stream_without_digest_is_no_success(stream: Iterable[dict[str, Any]]) -> None:
    with pytest.raises(PublishError, match="ended without a digest"):
        read(*stream)


def test_a_digest_of_another_tag_is_not_ours() -> None:
    with pytest.raises(PublishError, match="without a digest"):
        read(REFERS, {"status": f"latest: digest: {DIGEST} size: 524"})


def test_layers_are_reported_as_they_change() -> None:
    watch = Watch()
    mounted = {"status": "Mounted from egs/base", "progressDetail": {}, "id": "aaa"}
    retrying = {"status": "Retrying in 5 seconds", "progressDetail": {}, "id": "bbb"}
    read(REFERS, PREPARING, PUSHING, mounted, retrying, PUSHED, AUX, progress=watch)
    assert watch.layers == [
        LayerPush("455576075579", "waiting"),
        LayerPush("455576075579", "sending", 512, 3000),
        LayerPush("aaa", "there"),
        LayerPush("bbb", "retrying"),
        LayerPush("455576075579", "sent"),
    ]


def test_plain_progress_writes_a_line_per_change_of_state() -> None:
    shown = io.StringIO()
    progress = PlainProgress(shown)
    progress.begin(PLACE)
    read(PREPARING, PUSHING, PUSHING, PUSHED, AUX, progress=progress)
    progress.end()
    assert shown.getvalue().splitlines() == [f"pushing {PLACE}", "  455576075579 sending", "  455576075579 sent"]


def test_rich_progress_draws_and_takes_its_bars_away() -> None:
    shown = io.StringIO()
    progress = RichProgress(Console(file=shown, force_terminal=True, width=100))
    progress.begin(PLACE)
    read(*CLASSIC, progress=progress)
    progress.end()
    progress.end()
    assert PLACE in shown.getvalue()


@pytest.mark.parametrize(
    ("words", "says", "hint"),
    [
        (
            'Head "http://h:5/v2/egs/x/manifests/new": no basic auth credentials',
            "refuses the login",
            "docker login h:5",
        ),
        ("unauthorized: authentication required", "refuses the login", "docker login h:5"),
        (
            "push access denied, repository does not exist or may require authorization: "
            "authorization failed: no basic auth credentials",
            "refuses the login",
            "docker login h:5",
        ),
        (
            "unexpected status from HEAD request to http://h:5/v2/egs/x/blobs/sha256:5a: 401 Unauthorized",
            "refuses the login",
            "docker login h:5",
        ),
        ("denied: requested access to the resource is denied", "does not let this account", "docker login h:5"),
        (
            'Get "https://h:5/v2/": dial tcp: lookup h on 10.0.0.2:53: no such host',
            "cannot be found by name",
            "inside its region's VPC",
        ),
        (
            'Get "https://h:5/v2/": dial tcp: lookup h on 10.0.0.2:53: read udp: i/o timeout',
            "cannot be found by name",
            "inside its region's VPC",
        ),
        (
            'Get "http://h:5/v2/": dial tcp 127.0.0.1:5: connect: connection refused',
            "refuses the connection",
            "is the registry running",
        ),
        (
            'Get "http://h:5/v2/": net/http: request canceled (Client.Timeout exceeded while awaiting headers)',
            "does not answer",
            "inside its region's VPC",
        ),
        ('Get "http://h:5/v2/": context deadline exceeded', "does not answer", "inside its region's VPC"),
        ('Get "https://h:5/v2/": net/http: TLS handshake timeout', "does not answer", "inside its region's VPC"),
        (
            'Get "https://h:5/v2/": http: server gave HTTP response to HTTPS client',
            "speaks plain http",
            "insecure-registries",
        ),
        (
            "tls: failed to verify certificate: x509: certificate signed by unknown authority",
            "certificate",
            "/etc/docker/certs.d/h:5/ca.crt",
        ),
        ("received unexpected HTTP status: 507 Insufficient Storage", "507 Insufficient Storage", "words"),
    ],
)
def test_an_engines_words_become_a_sentence_and_a_way_out(words: str, says: str, hint: str) -> None:
    error = explain(words, "h:5/egs/x:t")
    assert "h:5" in error.message
    assert says in error.message
    assert hint in (error.hint or "")


# --- an engine's answer about a tag --------------------------------------------------------------------------------


@pytest.fixture
def engine_that_says() -> Iterator[Callable[[int, str], docker.APIClient]]:
    """Return a function that starts an engine with one answer to everything."""
    servers: list[HTTPServer] = []

    def make(status: int, body: str) -> docker.APIClient:
        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(status)
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        server = HTTPServer(("127.0.0.1", 0), Answer)
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return docker.APIClient(base_url=f"tcp://127.0.0.1:{server.server_port}", version="1.41")

    yield make
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (404, "manifest unknown: manifest unknown"),
        (404, "name unknown: repository name not known to registry"),
        (404, "name unknown: The repository with name 'x' does not exist in the registry with id '1'"),
        (500, "unknown: artifact egs/x:t not found"),
    ],
)
def test_words_for_an_absent_tag(
    engine_that_says: Callable[[int, str], docker.APIClient], status: int, words: str
) -> None:
    assert remote_digest(engine_that_says(status, json.dumps({"message": words})), PLACE, {}) is None


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, '{"message": "page not found"}'),  # an engine that does not know the request
        (404, "Not Found"),
        (403, '{"message": "denied: requested access to the resource is denied"}'),
        (502, ""),
    ],
)
def test_any_other_refusal_is_not_taken_for_an_absent_tag(
    engine_that_says: Callable[[int, str], docker.APIClient], status: int, body: str
) -> None:
    with pytest.raises(PublishError):
        remote_digest(engine_that_says(status, body), PLACE, {})


@pytest.mark.parametrize("body", ["", "{}", '{"Descriptor": null}', "<html>"])
def test_an_answer_without_digest_is_the_engines_fault(
    engine_that_says: Callable[[int, str], docker.APIClient], body: str
) -> None:
    with pytest.raises(EngineError, match="cannot be read"):
        remote_digest(engine_that_says(200, body), PLACE, {})


def test_an_engine_that_went_away_is_named_as_such() -> None:
    with pytest.raises(EngineError, match="went away"):
        remote_digest(docker.APIClient(base_url="tcp://127.0.0.1:9", version="1.41"), PLACE, {})


# --- credentials ---------------------------------------------------------------------------------------------------

LOGIN = "cHVibGlzaGVyOnM6ZWNyZXQ="  # publisher:s:ecret, a password with a colon


@pytest.fixture
def docker_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file that is the docker config now, and let helpers be found beside it."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return tmp_path / "config.json"


def helper(folder: Path, name: str, script: str) -> None:
    file = folder / f"docker-credential-{name}"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


def test_without_a_docker_config_a_push_is_anonymous(docker_config: Path) -> None:
    assert credentials_for(PLACE) == {}


@pytest.mark.parametrize("key", ["127.0.0.1:59245", "http://127.0.0.1:59245", "https://127.0.0.1:59245/v2/"])
def test_login_from_auths_however_the_host_is_written(docker_config: Path, key: str) -> None:
    docker_config.write_text(json.dumps({"auths": {key: {"auth": LOGIN}}}))
    found = credentials_for(PLACE)
    assert (found["username"], found["password"]) == ("publisher", "s:ecret")


@pytest.mark.parametrize("config", [{"credHelpers": {"127.0.0.1:59245": "lj"}}, {"credsStore": "lj"}])
def test_login_from_a_helper_goes_before_auths(docker_config: Path, config: dict[str, Any]) -> None:
    docker_config.write_text(json.dumps({"auths": {"127.0.0.1:59245": {"auth": LOGIN}}, **config}))
    helper(docker_config.parent, "lj", """echo '{"ServerURL": "x", "Username": "robot", "Secret": "key"}'""")
    found = credentials_for(PLACE)
    assert (found["username"], found["password"]) == ("robot", "key")


def test_identity_token_from_a_helper(docker_config: Path) -> None:
    docker_config.write_text('{"credsStore": "lj"}')
    helper(docker_config.parent, "lj", """echo '{"ServerURL": "x", "Username": "<token>", "Secret": "idt"}'""")
    assert credentials_for(PLACE)["identitytoken"] == "idt"


def test_a_helper_that_knows_no_login_leaves_auths_or_nothing(docker_config: Path) -> None:
    docker_config.write_text('{"credsStore": "lj"}')
    helper(docker_config.parent, "lj", "echo 'credentials not found in native keychain'; exit 1")
    assert credentials_for(PLACE) == {}


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo 'the token service is down'; exit 1", "the token service is down"),
        ("""echo '{"Secret": "hush"}'; exit 1""", "withheld"),
        ("echo 'hush, no JSON'", "no valid answer"),
        ("""echo '{"Password": "hush"}'""", "no valid answer"),
    ],
)
def test_a_helper_that_fails_is_named_and_tells_no_secret(docker_config: Path, script: str, says: str) -> None:
    docker_config.write_text('{"credsStore": "lj"}')
    helper(docker_config.parent, "lj", script)
    with pytest.raises(PublishError, match=says) as caught:
        credentials_for(PLACE)
    assert "docker-credential-lj" in caught.value.message
    assert "docker login 127.0.0.1:59245" in (caught.value.hint or "")
    assert "hush" not in "".join(caught.value.lines())


def test_an_absent_helper_is_an_error_without_a_python_warning(
    docker_config: Path, recwarn: pytest.WarningsRecorder
) -> None:
    docker_config.write_text('{"credsStore": "absent"}')
    with pytest.raises(PublishError, match="docker-credential-absent"):
        credentials_for(PLACE)
    assert not recwarn.list


@pytest.mark.parametrize("text", ["{", "[]", '{"auths": {"h": "hush"}}', '{"auths": {"h": {"auth": "hush"}}}'])
def test_a_docker_config_that_cannot_be_read_is_named(docker_config: Path, text: str) -> None:
    docker_config.write_text(text)
    with pytest.raises(LjImageError, match=r"config\.json cannot be read") as caught:
        credentials_for(PLACE)
    assert "hush" not in "".join(caught.value.lines())
