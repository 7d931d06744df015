"""What lies below HTTP: certificates, sockets that another thread can end, and a library that must not log."""

from __future__ import annotations

import logging
import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from lj_image.errors import Location, PublishError
from lj_image.lock.http import ssl_context
from lj_image.registry.access import Access

_MADE: Final = (".connect_tcp.complete", ".start_tls.complete")
"""How the events begin says who made it: a connection, or a proxy's tunnel."""
_TRUSTED_BY: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT")
_SHARING: Final = threading.Lock()
"""Places are asked all at once: without it, each would read for itself what the machine trusts."""
_LOGGERS: Final = ("httpx", "httpcore.connection", "httpcore.http11", "httpcore.proxy", "httpcore.socks")


class Sockets:
    """Every network stream of a client, to be shut down at once. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._streams: list[Any] = []
        self._is_over = False

    def remember(self, event: str, about: Mapping[str, Any]) -> None:
        """Keep the stream of a new connection (httpcore's trace extension), and forget those that are closed."""
        if not event.endswith(_MADE):
            return
        stream = about["return_value"]
        with self._lock:
            self._streams = [kept for kept in self._streams if _is_open(kept)] + [stream]
            is_over = self._is_over
        if is_over:
            _shut_down(stream)

    def shut_down(self) -> None:
        """Wake every thread that reads or writes, now and later."""
        with self._lock:
            self._is_over, streams = True, tuple(self._streams)
        for stream in streams:
            _shut_down(stream)


def tls_context(access: Access, environ: Mapping[str, str]) -> ssl.SSLContext:
    """Return what a registry's certificate is judged by, and our own; raises PublishError for files that are none."""
    if access.ca_bundle is None and access.client_certificate is None:
        with _SHARING:
            return _shared_context(tuple((name, value) for name in _TRUSTED_BY if (value := environ.get(name))))
    context = ssl_context(environ)
    if access.ca_bundle is not None:
        try:
            context.load_verify_locations(cafile=access.ca_bundle)
        except OSError as error:  # ssl.SSLError is one
            raise _unreadable("certificates", access.ca_bundle, access, error) from None
    if access.client_certificate is not None:
        try:
            # Without a password's callback, OpenSSL would ask for one at the terminal.
            context.load_cert_chain(access.client_certificate, access.client_key, password=lambda: "")
        except OSError as error:
            raise _unreadable("client certificate and key", access.client_certificate, access, error) from None
    return context


@lru_cache(maxsize=4)
def _shared_context(environ: tuple[tuple[str, str], ...]) -> ssl.SSLContext:
    """Return one context for all registries that need no other: reading what a machine trusts takes some 25 ms."""
    return ssl_context(dict(environ))


def silence() -> None:
    """Keep what httpx and httpcore tell of requests out of any log.

    They show addresses and headers; the Location of an upload, whose holder may write, is among them.
    """
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if _only_warnings not in logger.filters:
            logger.addFilter(_only_warnings)


def _only_warnings(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING


def _unreadable(what: str, path: Path, access: Access, error: OSError) -> PublishError:
    is_format = isinstance(error, ssl.SSLError) or error.strerror is None
    words = "no PEM, or the key is encrypted" if is_format else error.strerror
    return PublishError(
        f"the {what} for {access.host} cannot be read: {words}",
        hint="it should be a file in PEM form, its key without a password",
        location=Location(str(path)),
    )


def _is_open(stream: Any) -> bool:
    raw = stream.get_extra_info("socket")
    return isinstance(raw, socket.socket) and raw.fileno() != -1


def _shut_down(stream: Any) -> None:
    """Wake the thread that reads: closing a socket would not, shutting it down does."""
    raw = stream.get_extra_info("socket")
    if isinstance(raw, socket.socket):
        with suppress(OSError):  # it may be closed already
            socket.socket.shutdown(raw, socket.SHUT_RDWR)
