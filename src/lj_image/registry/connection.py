"""One registry, spoken with by HTTP: logins, redirects, and as many attempts as its answers deserve.

Threads may share a connection. What a registry asks of one request (429, Retry-After) all of them wait for.
Protocol: https://github.com/opencontainers/distribution-spec/blob/main/spec.md
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Final, Self
from urllib.parse import urljoin

import httpx

from lj_image.registry.access import Access, is_loopback
from lj_image.registry.auth import Authorizer
from lj_image.registry.credentials import Credentials, credentials_for
from lj_image.registry.faults import RegistryError, refused, unreachable
from lj_image.registry.leading import led_to, origin_of, parsed
from lj_image.registry.patience import CutOff, Gate
from lj_image.registry.reaching import Reaching
from lj_image.registry.sockets import Sockets, silence, tls_context

__all__ = ["Body", "Connection", "CutOff"]

_MOST_REDIRECTS: Final = 5
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})

Body = Callable[[], Iterable[bytes]]
"""Gives the bytes of a request from their beginning, anew each time it is called."""


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
        silence()
        self.access, self.host, self.base = access, access.host, access.base
        self._gate = Gate(access.host, access.patience, clock, sleep)
        self._sockets = Sockets()
        self._reaching = Reaching(access, self._gate.check) if transport is None else None
        self._client = httpx.Client(
            verify=tls_context(access, environ),
            timeout=httpx.Timeout(access.patience.idle_s, connect=access.patience.connect_s),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=32),
            transport=transport,
            trust_env=not is_loopback(access.host),  # no proxy leads to this machine
            headers={"User-Agent": "lj-image", "Accept-Encoding": "identity"},
            # Some registries (Harbor) take who sends their cookies back for a browser, and ask for more than a login.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        )
        self._authorizer = Authorizer(access, credentials, self._granting, clock=clock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self._client.close()

    def cut_off(self) -> None:
        """End every request now, also one that waits for a silent registry; from any thread."""
        self._gate.cut_off()
        self._sockets.shut_down()

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

        def once() -> httpx.Response:
            login = self._login(url, scopes, what)
            request = self._request(method, url, {**(headers or {}), **login}, content, read_s)
            return self._following(request, is_stream=is_stream)

        response = once()
        if response.status_code == 401 and self._is_own(response.request.url):
            self.read(response)
            self._authorizer.answer(response, scopes, what)
            response = once()  # who refuses a new login refuses
        return response

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
            self._gate.wait_until_open()
            login = self._login(url, scopes, what)
            request = self._request(method, url, {**headers, **login}, self._guarded(body), read_s)
            try:
                response = self._exchanged(request)
            except httpx.RequestError as error:
                self._gate.check()
                if isinstance(error, httpx.TransportError):
                    raise
                raise httpx.RemoteProtocolError(str(error)) from None  # an encoding that nobody asked for, and wrong
            if (led := self._redirected(response)) is not None:
                url = led
                continue
            if response.status_code == 401 and self._is_own(response.request.url):
                self._authorizer.answer(response, scopes, what)
            return response
        raise self._in_circles()

    def wait_before(
        self, attempt: int, response: httpx.Response | None = None, error: httpx.TransportError | None = None
    ) -> bool:
        """Wait as long as an answer, or the lack of one, asks for; say False where another attempt would end the same.

        `attempt` counts from 0, and from anew with each progress.
        """
        return self._gate.wait_before(attempt, response, error)

    def location(self, response: httpx.Response) -> str | None:
        """Return where an upload goes on; it may be relative (spec, "Pushing a blob monolithically").

        Raises RegistryError for an address that a registry must not lead to.
        """
        named = response.headers.get("Location")
        return None if named is None else led_to(self.access, str(response.request.url), named)

    def safe(self, url: str) -> str:
        """Return an address that we were sent to; raises RegistryError for one that must not be followed."""
        return led_to(self.access, self.base, url)

    def read(self, response: httpx.Response) -> None:
        """Read the words of an answer that was opened as a stream."""
        try:
            response.read()
        except httpx.RequestError as error:
            self._gate.check()
            raise unreachable(error, self.host) from None
        finally:
            response.close()

    def _request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        content: bytes | Iterable[bytes] | None,
        read_s: float | None,
    ) -> httpx.Request:
        request = self._client.build_request(method, parsed(url), headers=headers, content=content)
        request.extensions.update(self._extensions(read_s))
        return request

    def _extensions(self, read_s: float | None = None) -> dict[str, Any]:
        patience, left_s = self.access.patience, self._gate.left_s
        idle_s = min(patience.idle_s, left_s)
        timeout = httpx.Timeout(
            idle_s, connect=min(patience.connect_s, left_s), read=min(read_s or patience.idle_s, left_s)
        )
        return {"trace": self._trace, "timeout": timeout.as_dict()}

    def _following(self, request: httpx.Request, *, is_stream: bool = False) -> httpx.Response:
        """Follow redirects, such as to where blobs are stored, with the same body; a login goes to its origin alone."""
        for _ in range(_MOST_REDIRECTS):
            response = self._patiently(request, is_stream=is_stream)
            led = self._redirected(response)
            if led is None:
                return response
            request = self._led(request, led, turns_to_get=response.status_code == 303)
        raise self._in_circles()

    def _redirected(self, response: httpx.Response) -> str | None:
        if response.status_code not in _REDIRECTS or "Location" not in response.headers:
            return None
        response.close()
        return self.location(response)

    def _led(self, request: httpx.Request, url: str, *, turns_to_get: bool) -> httpx.Request:
        """Return the same request to another address. 301 and 302 keep the method: registries mean 307 by them."""
        headers = httpx.Headers(request.headers)
        del headers["Host"]
        if origin_of(url) != origin_of(request.url):
            headers.pop("Authorization", None)
            if request.headers.get("Content-Type") == "application/x-www-form-urlencoded":
                raise RegistryError(
                    f"{self.host} leads a login on to {httpx.URL(url).host}", hint="nothing was sent there"
                )
        if turns_to_get and request.method != "HEAD":
            for name in ("Content-Length", "Content-Type"):
                headers.pop(name, None)
            return httpx.Request("GET", url, headers=headers, extensions=request.extensions)
        return httpx.Request(
            request.method, url, headers=headers, content=request.content, extensions=request.extensions
        )

    def _granting(self, request: httpx.Request) -> httpx.Response:
        """Send a request for a token."""
        request.extensions.update(self._extensions())
        request.headers["User-Agent"] = self._client.headers["User-Agent"]
        return self._following(request)

    def _patiently(self, request: httpx.Request, *, is_stream: bool = False) -> httpx.Response:
        """Send a request whose body is in memory, again while a failure may be temporary."""
        attempt = 0
        while True:
            self._gate.wait_until_open()
            try:
                response = self._exchanged(request, is_stream=is_stream)
            except httpx.DecodingError as error:  # an encoding that nobody asked for, and wrong
                raise unreachable(error, request.url.netloc.decode()) from None
            except httpx.TransportError as error:
                if not self.wait_before(attempt, error=error):
                    raise unreachable(error, request.url.netloc.decode()) from None
            else:
                if not self.wait_before(attempt, response):
                    return response
                response.close()
            attempt += 1

    def _exchanged(self, request: httpx.Request, *, is_stream: bool = False) -> httpx.Response:
        if self._reaching is not None and self._is_own(request.url):
            self._reaching.reach()
        return self._client.send(request, stream=is_stream, follow_redirects=False)

    def _guarded(self, body: Body) -> Iterator[bytes]:
        """Give the bytes of a body, as long as there is any use in it."""
        for piece in body():
            self._gate.check()
            yield piece

    def _login(self, url: str, scopes: tuple[str, ...], what: str) -> dict[str, str]:
        granted = self._authorizer.header(scopes, what) if self._is_own(url) else None
        return {"Authorization": granted} if granted else {}

    def _is_own(self, url: str | httpx.URL) -> bool:
        """Say whether an address is the registry's own: no other gets its login, or is answered with one."""
        return origin_of(url) == origin_of(self.base)

    def _in_circles(self) -> RegistryError:
        return RegistryError(f"{self.host} leads from one address to the next, {_MOST_REDIRECTS} times")

    def _trace(self, event: str, about: dict[str, Any]) -> None:
        self._sockets.remember(event, about)
