"""Raw connections out of docker-py: the only module that reaches into its private parts, and urllib3's.

docker-py dials unix sockets, TCP, TLS and ssh, but has no public way to send one header several times, nor to
hand a connection over. So this goes one level down, to the urllib3 pool that docker-py would use itself. A pool
gives every caller a connection of its own, so these functions may be called from any thread.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Iterable
from typing import Any, cast
from urllib.parse import urlsplit

import docker
import requests
from urllib3 import BaseHTTPResponse, HTTPHeaderDict

from lj_image.builders.docker.session.pipe import SocketPipe
from lj_image.errors import EngineError

HTTP_SWITCHING_PROTOCOLS = 101


def engine_url(api: docker.APIClient, path: str) -> str:
    """Return the address of an endpoint of the engine API in the version that `api` speaks."""
    return f"{api.base_url}/v{api.api_version}{path}"


def request(
    api: docker.APIClient, path: str, headers: Iterable[tuple[str, str]] = (), timeout_s: float | None = None
) -> BaseHTTPResponse:
    """POST to the engine on a connection of its own; header names may repeat, the body is not read."""
    url = engine_url(api, path)
    parts = urlsplit(url)
    fields = HTTPHeaderDict({"Host": parts.netloc or "localhost", "Content-Length": "0"})
    for name, text in headers:
        fields.add(name, text)
    response = _pool(api, url).urlopen(
        "POST",
        f"{parts.path}?{parts.query}" if parts.query else parts.path,
        headers=fields,
        preload_content=False,
        timeout=timeout_s,
        retries=False,
        redirect=False,
        assert_same_host=False,
    )
    return cast("BaseHTTPResponse", response)


def hijack(api: docker.APIClient, path: str, headers: Iterable[tuple[str, str]]) -> SocketPipe:
    """POST with an upgrade to HTTP/2 and return the connection behind it.

    Raises EngineError when the engine does not switch protocols.
    """
    upgrade = (("Connection", "Upgrade"), ("Upgrade", "h2c"))
    response = request(api, path, (*upgrade, *headers))
    if response.status != HTTP_SWITCHING_PROTOCOLS:
        answer = response.read().decode("utf-8", "replace").strip()
        response.close()
        raise EngineError(f"the engine refuses a session: HTTP {response.status} {answer}", hint=_way_out(response))
    reader, sock = _connection(response)
    sock.setblocking(False)
    return SocketPipe(sock, _read_ahead(reader), owner=response)


def disconnect(response: requests.Response) -> None:
    """End the connection below a streamed response, also while another thread reads it."""
    with contextlib.suppress(OSError, AttributeError):  # it may have ended by itself meanwhile
        _connection(response.raw)[1].shutdown(socket.SHUT_RDWR)


def keep_alive(response: requests.Response) -> None:
    """Let TCP notice when the other machine is gone: an engine may say nothing for an hour while a step runs."""
    with contextlib.suppress(OSError, AttributeError):
        sock = _connection(response.raw)[1]
        if sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def _pool(api: docker.APIClient, url: str) -> Any:
    prepared = requests.Request("POST", url).prepare()
    adapter: Any = api.get_adapter(url)
    return adapter.get_connection_with_tls_context(prepared, api.verify, cert=api.cert)


def _connection(response: Any) -> tuple[Any, socket.socket]:
    reader = response._fp.fp  # http.client's BufferedReader
    return reader, reader.raw._sock


def _read_ahead(reader: Any) -> bytes:
    """Return what http.client has read beyond the 101: usually the engine's HTTP/2 preface."""
    try:
        return bytes(reader.peek())
    except (BlockingIOError, ssl.SSLWantReadError):  # nothing there yet
        return b""


def _way_out(response: BaseHTTPResponse) -> str | None:
    if response.status != requests.codes.not_found:
        return None
    return "this engine no longer offers POST /session; build with --builder docker-classic"
