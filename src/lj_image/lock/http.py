"""HTTP for index pages and files: certificates, proxies, credentials, retries; nothing knows locks here."""

from __future__ import annotations

import email.utils
import os
import random
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import url2pathname

import httpx

from lj_image.errors import LjImageError

ATTEMPTS: Final = 6
"""Tries in a row without one new byte."""
LONGEST_WAIT_S: Final = 60.0
_TIMEOUT: Final = httpx.Timeout(30.0, connect=15.0)
_TEMPORARY: Final = frozenset({408, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Address:
    """Where an index or a folder of archives is, and who may read it; never shown with its password."""

    url: str
    username: str | None = None
    password: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, url: str) -> Address:
        """Split a user and a password off an address."""
        parts = urlsplit(url)
        if parts.username is None:
            return cls(url)
        bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        return cls(bare, unquote(parts.username), unquote(parts.password or ""))

    def auth_for(self, url: str) -> httpx.BasicAuth | None:
        """Return credentials for a request: only for the address's own host, never for one it links to."""
        if self.username is None or _origin(self.url) != _origin(url):
            return None
        return httpx.BasicAuth(self.username, self.password or "")


class Stopped(Exception):
    """The transfer was told to stop."""


class Refused(Exception):
    """The server answered, and not with the file."""

    def __init__(self, status: int, url: str) -> None:
        super().__init__(f"{status} {httpx.codes.get_reason_phrase(status)}".strip() + f" from {bare(url)}")
        self.status = status


class Client:
    """An httpx client whose running transfers can be cut off from another thread."""

    def __init__(
        self,
        environ: Mapping[str, str] = os.environ,
        *,
        connections: int = 16,
        attempts: int = ATTEMPTS,
        timeout: httpx.Timeout = _TIMEOUT,
    ) -> None:
        self.stop = threading.Event()
        self._attempts = attempts
        self._streams: list[Any] = []
        """Every connection made, to be shut down; list.append and tuple() are atomic."""
        self._client = httpx.Client(
            verify=ssl_context(environ),
            timeout=timeout,
            follow_redirects=True,
            limits=httpx.Limits(max_connections=connections),
            # The second for NO_PROXY=localhost, whose rule for that host would go before the first.
            mounts={"file://": FileTransport(), "file://localhost": FileTransport()},
            headers={"User-Agent": "lj-image", "Accept-Encoding": "identity"},
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exc: object) -> None:
        self._client.close()

    @contextmanager
    def stream(self, url: str, address: Address, headers: Mapping[str, str] | None = None) -> Iterator[httpx.Response]:
        """Open one response; the caller looks at its status."""
        self.check()
        extensions = {"trace": self._remember}
        request = self._client.build_request("GET", _with_host(url), headers=dict(headers or {}), extensions=extensions)
        response = self._client.send(request, auth=address.auth_for(url), stream=True)
        try:
            self.check()
            yield response
        finally:
            response.close()

    def page(self, url: str, address: Address, accept: str) -> httpx.Response:
        """Return a whole small response, tried again while the failure may be temporary; raises Refused."""
        for attempt in range(self._attempts):
            try:
                with self.stream(url, address, {"Accept": accept, "Accept-Encoding": "gzip"}) as response:
                    if response.is_success:
                        response.read()
                        return response
                    failure: Exception = Refused(response.status_code, url)
                    wait_s = wait_after(response, attempt)
            except httpx.TransportError as error:
                self.check()
                failure, wait_s = error, backoff_s(attempt)
            if wait_s is None or attempt + 1 == self._attempts:
                raise failure
            self.sleep(wait_s)
        raise AssertionError("the last attempt returns or raises")

    def size_of(self, url: str, address: Address) -> int | None:
        """Ask for the size of a file without loading it."""
        self.check()
        try:
            answer = self._client.head(_with_host(url), auth=address.auth_for(url) or httpx.USE_CLIENT_DEFAULT)
        except httpx.TransportError:
            return None
        length = answer.headers.get("Content-Length", "")
        return int(length) if answer.is_success and length.isdigit() else None

    def sleep(self, wait_s: float) -> None:
        """Wait between two attempts, no longer than until the stop."""
        self.stop.wait(wait_s)
        self.check()

    def check(self) -> None:
        """Raise Stopped when it is time to."""
        if self.stop.is_set():
            raise Stopped

    def cut_off(self) -> None:
        """Stop every transfer now, also one that waits for a silent server."""
        self.stop.set()
        for stream in tuple(self._streams):
            _shut_down(stream)

    def _remember(self, event: str, info: dict[str, Any]) -> None:
        """Keep the network stream of a new connection (httpcore's trace extension)."""
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self._streams.append(info["return_value"])
            if self.stop.is_set():
                _shut_down(info["return_value"])


class FileTransport(httpx.BaseTransport):
    """Serves `file://` addresses, for indexes and archives that lie in a folder."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer with a file, or with the `index.html` of a folder."""
        path = Path(url2pathname(urlsplit(str(request.url)).path))
        path = path / "index.html" if path.is_dir() else path
        if not path.is_file():
            return httpx.Response(404, request=request)
        headers = {"Content-Length": str(path.stat().st_size)}
        if path.suffix == ".html":
            headers["Content-Type"] = "text/html"
        if request.method == "HEAD":
            return httpx.Response(200, headers=headers, request=request)
        return httpx.Response(200, headers=headers, stream=_FileStream(path), request=request)


class _FileStream(httpx.SyncByteStream):
    def __init__(self, path: Path) -> None:
        self._path = path

    def __iter__(self) -> Iterator[bytes]:
        with self._path.open("rb") as file:
            while chunk := file.read(1024 * 1024):
                yield chunk


def ssl_context(environ: Mapping[str, str]) -> ssl.SSLContext:
    """Trust what the machine's tools trust: SSL_CERT_FILE, SSL_CERT_DIR, then what requests and curl are told.

    httpx 0.28 reads only the first two, and many machines behind a proxy set only the others.
    """
    files = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT")
    named = next((name for name in files if environ.get(name)), None)
    folder = environ.get("SSL_CERT_DIR") or None
    if named is None and folder is None:
        return httpx.create_ssl_context(trust_env=False)
    bundle = environ[named] if named else None
    if bundle and Path(bundle).is_dir():
        bundle, folder = None, bundle
    try:
        return ssl.create_default_context(cafile=bundle, capath=folder)
    except OSError as error:  # ssl.SSLError is one
        raise LjImageError(
            f"{named} names {bundle}, which cannot be read: {error}",
            hint="it should be a file of certificates in PEM form",
        ) from None


def wait_after(response: httpx.Response, attempt: int) -> float | None:
    """Return how long to wait before the next attempt; None when another would end the same."""
    if response.status_code not in _TEMPORARY:
        return None
    told = _retry_after_s(response.headers.get("Retry-After"))
    return backoff_s(attempt) if told is None else min(told, LONGEST_WAIT_S)


def backoff_s(attempt: int) -> float:
    """Return a wait that doubles, with a random part so that eight threads do not return together."""
    wait_s: float = min(0.5 * 2**attempt, LONGEST_WAIT_S)
    return wait_s * random.uniform(0.5, 1.0)


def bare(url: str) -> str:
    """Return an address to show: without user, password, query or fragment, which may hold tokens."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _retry_after_s(value: str | None) -> float | None:
    """Read both forms of the header (RFC 9110 §10.2.3): seconds, or a date."""
    if value is None:
        return None
    if value.strip().isdigit():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


def _with_host(url: str) -> str:
    """Name the host that `file:///path` leaves out: httpx takes an address without one for a relative one."""
    return url.replace("file:///", "file://localhost/", 1) if url.startswith("file:///") else url


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"https": 443, "http": 80}.get(parts.scheme)


def _shut_down(stream: Any) -> None:
    """Wake the thread that reads: closing a socket would not, shutting it down does."""
    raw = stream.get_extra_info("socket")
    if isinstance(raw, socket.socket):
        with suppress(OSError):  # it may be closed already
            socket.socket.shutdown(raw, socket.SHUT_RDWR)
