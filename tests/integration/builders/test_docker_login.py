"""The engine's BuildKit asks our session for a registry's login, and uses it."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import docker
import pytest
from watching import Seen

from lj_image.builders.docker import buildkit
from lj_image.builders.docker.request import BuildRequest
from lj_image.context import BuildContext
from lj_image.errors import BuildError

pytestmark = pytest.mark.engine


class Registry:
    """Wants a login, and has nothing once it is given."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.logins: list[str] = []
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.requests.append(self.path)
                login = self.headers.get("Authorization")
                registry.logins += [login] if login else []
                self.send_response(404 if login else 401)
                if not login:
                    self.send_header("WWW-Authenticate", 'Basic realm="r"')
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_HEAD = do_GET

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.name = f"localhost:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def guarded() -> Iterator[Registry]:
    registry = Registry()
    yield registry
    registry.server.shutdown()
    registry.server.server_close()


def test_a_base_is_asked_for_with_the_login_of_the_docker_config(
    api: docker.APIClient, guarded: Registry, tag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    login = base64.b64encode(b"me:pass").decode()
    (tmp_path / "config.json").write_text(json.dumps({"auths": {guarded.name: {"auth": login}}}))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    request = BuildRequest(BuildContext(f"FROM {guarded.name}/a/b:1\n"), tags=(tag,), network="none")
    with pytest.raises(BuildError):
        buildkit.build(api, request, Seen())
    if not guarded.requests:
        pytest.skip("this engine speaks to registries on localhost by TLS only, or is on another machine")
    assert f"Basic {login}" in guarded.logins
