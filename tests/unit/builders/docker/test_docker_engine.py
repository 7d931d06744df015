from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from lj_image.builders.docker import engine
from lj_image.errors import EngineError


class FakeEngine:
    """Answers a few questions over TCP, as its fields say."""

    def __init__(self) -> None:
        self.ping: dict[str, str] = {}
        self.version: dict[str, Any] = {"ApiVersion": "1.41", "Os": "linux", "Components": [{"Name": "Engine"}]}
        self.info: dict[str, Any] = {}
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                answers = {"_ping": "OK", "version": fake.version, "info": fake.info}
                body = json.dumps(answers[self.path.rsplit("/", 1)[-1]]).encode()
                self.send_response(200)
                for name, text in (fake.ping if self.path.endswith("_ping") else {}).items():
                    self.send_header(name, text)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEngine]:
    fake = FakeEngine()
    monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{fake.server.server_port}")
    monkeypatch.delenv("DOCKER_TLS_VERIFY", raising=False)
    yield fake
    fake.server.shutdown()
    fake.server.server_close()


def test_the_client_speaks_the_engines_version_and_ignores_the_environments_proxy(
    fake: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    api = engine.connect()
    assert api.api_version == "1.41"
    assert not api.trust_env


@pytest.mark.parametrize(
    ("ping", "version", "expected"),
    [
        ({"Builder-Version": "2"}, {}, True),
        ({"Builder-Version": "1"}, {}, False),
        ({}, {}, True),  # 20.10 says nothing and has it
        ({}, {"ApiVersion": "1.38"}, False),
        ({}, {"Os": "windows"}, False),
        ({}, {"Components": [{"Name": "Podman Engine"}]}, False),
        ({}, {"Components": None}, False),
    ],
)
def test_buildkit_is_known_from_ping_or_version(
    fake: FakeEngine, ping: dict[str, str], version: dict[str, Any], expected: bool
) -> None:
    api = engine.connect()
    fake.ping, fake.version = ping, {**fake.version, **version}
    assert engine.supports_buildkit(api) is expected


def test_free_space_of_an_engine_elsewhere_is_unknown(fake: FakeEngine) -> None:
    fake.info = {"DockerRootDir": "/"}
    assert engine.free_bytes(engine.connect()) is None


def expect(monkeypatch: pytest.MonkeyPatch, host: str) -> EngineError:
    monkeypatch.setenv("DOCKER_HOST", host)
    with pytest.raises(EngineError) as caught:
        engine.connect()
    return caught.value


def test_an_absent_engine_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    error = expect(monkeypatch, f"unix://{tmp_path}/none.sock")
    assert error.message == f"no engine answers at unix://{tmp_path}/none.sock"
    assert "DOCKER_HOST" in (error.hint or "")


@pytest.mark.parametrize("login", ["hunter2", "aHVudGVyMg==", "/////w=="])
def test_a_login_that_docker_did_not_write_is_told_and_not_shown(
    login: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"auths": {"registry.example": {"auth": login}}}))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    with pytest.raises(EngineError, match="is not the base64 of user:password") as failure:
        engine.connect()
    assert "hunter2" not in str(failure.value)
    assert failure.value.__suppress_context__


def test_a_port_where_nobody_listens_is_an_absent_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert "no engine answers" in expect(monkeypatch, f"tcp://127.0.0.1:{port}").message


def test_a_socket_that_is_not_ours_names_the_group() -> None:
    error = engine.engine_error(RuntimeError("Connection aborted.", PermissionError(13, "Permission denied")))
    assert "no permission" in error.message
    assert "group" in (error.hint or "")


def test_a_host_that_makes_no_sense_is_an_engine_error(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "nonsense://x" in expect(monkeypatch, "nonsense://x").message


def test_an_untrusted_certificate_names_the_variables(fake: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_TLS_VERIFY", "1")
    monkeypatch.setenv("DOCKER_CERT_PATH", "/nowhere")
    error = expect(monkeypatch, f"tcp://127.0.0.1:{fake.server.server_port}")
    assert "no trusted connection" in error.message
    assert "DOCKER_CERT_PATH" in (error.hint or "")
