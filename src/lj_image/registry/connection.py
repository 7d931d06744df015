"""One registry, spoken with by HTTP: logins, redirects, and as many attempts as its answers deserve.

Threads may share a connection. What a registry asks of one request (429, Retry-After) all of them wait for.
Protocol: https://github.com/opencontainers/distribution-spec/blob/main/spec.md
"""

from __future__ import annotations

import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, Self
from urllib.parse import urljoin

import httpx

from lj_image.lock.http import backoff_s, ssl_context, wait_after
from lj_image.registry.access import Access, is_loopback
from lj_image.registry.auth import Authorizer
from lj_image.registry.credentials import Credentials, credentials_for
from lj_image.registry.faults import RegistryError, refused, unreachable

_MOST_REDIRECTS: Final = 5
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})

Body = Callable[[], Iterable[bytes]]
"""Gives the bytes of a request from their beginning, anew each time it is called."""


class CutOff(Exception):
    """The connection was told to end."""


class Connection:
    """HTTP with one registry. Methods raise RegistryError where it does not answer, CutOff once it was cut off."""

    def __init__(
        self,
        access: Access,
        *,
        credentials: Callable[[str], Credentials | None] = credentials_for,
        transport: httpx.BaseTransport | None = None,
        environ: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        self.access, self.host, self.base = access, access.host, access.base
        self._clock = clock
        self._stop = threading.Event()
        self._sleep = sleep or self._stop.wait
        self._streams: list[Any] = []
        """Every connection made, to be shut down; list.append and tuple() are atomic."""
        self._held_until = 0.0
        self._ends_at = float("inf") if access.patience.deadline_s is None else clock() + access.patience.deadline_s
        patience = access.patience
        self._client = httpx.Client(
            verify=_context(access, environ),
            timeout=httpx.Timeout(patience.idle_s, connect=patience.connect_s),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=32),
            transport=transport,
            trust_env=not is_loopback(access.host),  # no proxy leads to this machine
            headers={"User-Agent": "lj-image", "Accept-Encoding": "identity"},
        )
        self._authorizer = Authorizer(lambda: credentials(access.host), self._patiently, plain_http=access.is_plain)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self._client.close()

    def cut_off(self) -> None:
        """End every request now, also one that waits for a silent registry; from any thread."""
        self._stop.set()
        for stream in tuple(self._streams):
            _shut_down(stream)

    def ask(
        self,
        method: str,
        path: str,
        scopes: tuple[str, ...],
        what: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> httpx.Response:
        """Send a request, and raise RegistryError where it is refused."""
        response = self.send(method, path, scopes, what, headers=headers, content=content)
        if not response.is_success:
            raise refused(response, what)
        return response

    def send(
        self,
        method: str,
        path: str,
        scopes: tuple[str, ...],
        what: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        is_stream: bool = False,
        read_s: float | None = None,
    ) -> httpx.Response:
        """Send a request that may be sent again, with a login where one is asked for; the answer may be a refusal.

        `path` is relative to /v2/, or an address that the registry gave. `read_s` is how long to wait for the answer.
        """
        url = urljoin(self.base, path)
        for _ in range(2):
            response = self._following(method, url, scopes, headers or {}, content, is_stream=is_stream, read_s=read_s)
            if response.status_code != 401:
                return response
            self.read(response)
            self._authorizer.answer(response, scopes, what)
        return self._following(method, url, scopes, headers or {}, content, is_stream=is_stream, read_s=read_s)

    def send_body(
        self,
        method: str,
        url: str,
        scopes: tuple[str, ...],
        what: str,
        body: Body,
        *,
        headers: Mapping[str, str],
        read_s: float | None = None,
    ) -> httpx.Response:
        """Send a request with a large body once: whoever sends it asks first what arrived before it is sent again.

        The answer may be a refusal; after a 401 the login is new. Raises httpx.TransportError where none came.
        """
        for _ in range(_MOST_REDIRECTS):
            self._wait_while_held()
            request = self._client.build_request(
                method, url, headers=self._with_login(url, scopes, headers), content=body(), **self._extras(read_s)
            )
            response = self._client.send(request, follow_redirects=False)
            if response.status_code in _REDIRECTS and "Location" in response.headers:
                url = self.safe(urljoin(url, response.headers["Location"]))
                continue
            if response.status_code == 401:
                self._authorizer.answer(response, scopes, what)
            return response
        raise RegistryError(f"{self.host} leads from one address to the next, {_MOST_REDIRECTS} times")

    def wait_before(self, attempt: int, response: httpx.Response | None = None) -> bool:
        """Wait as long as an answer, or the lack of one, asks for; say False where another attempt would end the same.

        `attempt` counts from 0, and from anew with each progress.
        """
        patience = self.access.patience
        wait_s = backoff_s(attempt) if response is None else wait_after(response, attempt)
        if wait_s is None or attempt + 1 >= patience.attempts:
            return False
        if response is not None and response.status_code in (429, 503):
            self._held_until = max(self._held_until, self._clock() + min(wait_s, patience.longest_wait_s))
            self._wait_while_held()
        else:
            self._pause(min(wait_s, patience.longest_wait_s))
        return True

    def location(self, response: httpx.Response) -> str | None:
        """Return where an upload goes on; it may be relative (spec, "Pushing a blob monolithically")."""
        location = response.headers.get("Location")
        return None if location is None else self.safe(urljoin(str(response.request.url), location))

    def safe(self, url: str) -> str:
        """Return an address that we were sent to; never plain http from https.

        A registry behind a proxy may not know that it is spoken to by https: its own host is reached by https anyway.
        """
        own, other = httpx.URL(self.base), httpx.URL(url)
        if own.scheme == "https" and other.scheme == "http":
            if other.host != own.host:
                raise RegistryError(f"{self.host} leads to {other.host} without https", hint="ask the registry's owner")
            return str(other.copy_with(scheme="https", port=own.port))
        return url

    def read(self, response: httpx.Response) -> None:
        """Read the words of an answer that was opened as a stream."""
        try:
            response.read()
        except httpx.TransportError as error:
            raise unreachable(error, self.host) from None
        finally:
            response.close()

    def _following(
        self,
        method: str,
        url: str,
        scopes: tuple[str, ...],
        headers: Mapping[str, str],
        content: bytes | None,
        *,
        is_stream: bool,
        read_s: float | None,
    ) -> httpx.Response:
        """Follow redirects, such as to where blobs are stored; the login goes to the registry alone."""
        for _ in range(_MOST_REDIRECTS):
            request = self._client.build_request(
                method, url, headers=self._with_login(url, scopes, headers), content=content, **self._extras(read_s)
            )
            response = self._patiently(request, is_stream=is_stream)
            if response.status_code not in _REDIRECTS or "Location" not in response.headers:
                return response
            response.close()
            url = self.safe(urljoin(url, response.headers["Location"]))
        raise RegistryError(f"{self.host} leads from one address to the next, {_MOST_REDIRECTS} times")

    def _patiently(self, request: httpx.Request, *, is_stream: bool = False) -> httpx.Response:
        """Send a request whose body is in memory, again while a failure may be temporary."""
        for attempt in range(self.access.patience.attempts):
            self._wait_while_held()
            try:
                response = self._client.send(request, stream=is_stream, follow_redirects=False)
            except httpx.TransportError as error:
                self._check()
                if not self.wait_before(attempt):
                    raise unreachable(error, request.url.netloc.decode()) from None
                continue
            if not self.wait_before(attempt, response):
                return response
            response.close()
        raise AssertionError("the last attempt returns or raises")

    def _with_login(self, url: str, scopes: tuple[str, ...], headers: Mapping[str, str]) -> dict[str, str]:
        granted = self._authorizer.header(scopes) if self._is_own(url) else None
        return {**headers, **({"Authorization": granted} if granted else {})}

    def _extras(self, read_s: float | None) -> dict[str, Any]:
        patience = self.access.patience
        timeout = httpx.Timeout(patience.idle_s, connect=patience.connect_s, read=read_s or patience.idle_s)
        return {"extensions": {"trace": self._remember, "timeout": timeout.as_dict()}}

    def _wait_while_held(self) -> None:
        while (left_s := self._held_until - self._clock()) > 0:
            self._pause(left_s)
        self._check()

    def _pause(self, wait_s: float) -> None:
        if self._clock() + wait_s > self._ends_at:
            raise self._too_late()
        self._sleep(wait_s)
        self._check()

    def _check(self) -> None:
        if self._stop.is_set():
            raise CutOff
        if self._clock() > self._ends_at:
            raise self._too_late()

    def _too_late(self) -> RegistryError:
        return RegistryError(
            f"{self.host} was not done after {self.access.patience.deadline_s:,.0f} s",
            hint="run the same command again: what is there stays there; --deadline gives it more time",
        )

    def _is_own(self, url: str) -> bool:
        return _origin(url) == _origin(self.base)

    def _remember(self, event: str, about: dict[str, Any]) -> None:
        """Keep the network stream of a new connection (httpcore's trace extension)."""
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self._streams.append(about["return_value"])
            if self._stop.is_set():
                _shut_down(about["return_value"])


def _context(access: Access, environ: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl_context(environ)
    if access.ca_bundle is not None:
        context.load_verify_locations(cafile=access.ca_bundle)
    if access.client_certificate is not None:
        context.load_cert_chain(access.client_certificate, access.client_key)
    return context


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = httpx.URL(url)
    return parts.scheme, parts.host, parts.port


def _shut_down(stream: Any) -> None:
    """Wake the thread that reads: closing a socket would not, shutting it down does."""
    raw = stream.get_extra_info("socket")
    if isinstance(raw, socket.socket):
        with suppress(OSError):  # it may be closed already
            socket.socket.shutdown(raw, socket.SHUT_RDWR)
