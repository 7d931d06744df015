"""Whether a registry's host can be connected to, asked once for all threads, and given up the moment all has to end.

A host of a VPC, seen from outside, takes no packet and refuses none. Every thread that waits to be connected to it
would wait by itself, and nothing ends such a wait from outside; so one tries first, for all.
"""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Callable
from typing import Final
from urllib.request import getproxies, proxy_bypass

import httpx

from lj_image.registry.access import Access, is_loopback

_LOOK_S: Final = 0.05
_PORTS: Final = {"http": 80, "https": 443}


class Reaching:
    """The first connection to a host. Safe for threads."""

    def __init__(self, access: Access, check: Callable[[], None]) -> None:
        """`check` raises when all has to end."""
        url = httpx.URL(access.base)
        self._address = (url.host, url.port or _PORTS[url.scheme])
        self._timeout_s, self._check = access.patience.connect_s, check
        self._turn = threading.Lock()
        self._is_reached = is_proxied(access)  # what a proxy reaches is not to be tried from here

    def reach(self) -> None:
        """Return once the host was connected to; raises httpx.ConnectError or ConnectTimeout, and what `check` does."""
        if self._is_reached:
            return
        while not self._turn.acquire(timeout=_LOOK_S):
            self._check()
        try:
            if not self._is_reached:
                self._try()
            self._is_reached = True
        finally:
            self._turn.release()

    def _try(self) -> None:
        answers: queue.SimpleQueue[OSError | None] = queue.SimpleQueue()
        # Looking a name up cannot be ended from outside, so whoever does it is left behind: it holds nothing.
        threading.Thread(target=self._connect, args=(answers,), name="reach", daemon=True).start()
        while True:
            self._check()
            try:
                error = answers.get(timeout=_LOOK_S)
            except queue.Empty:
                continue
            if isinstance(error, TimeoutError):
                raise httpx.ConnectTimeout(str(error)) from error
            if error is not None:
                raise httpx.ConnectError(str(error)) from error
            return

    def _connect(self, answers: queue.SimpleQueue[OSError | None]) -> None:
        try:
            socket.create_connection(self._address, self._timeout_s).close()
        except OSError as error:
            answers.put(error)
        except UnicodeError as error:  # a name that IDNA does not know: an empty or too long label
            answers.put(socket.gaierror(socket.EAI_NONAME, str(error)))
        else:
            answers.put(None)


def is_proxied(access: Access) -> bool:
    """Say whether the environment names a proxy for a registry; none leads to this machine."""
    if is_loopback(access.host):
        return False
    url, proxies = httpx.URL(access.base), getproxies()
    return (url.scheme in proxies or "all" in proxies) and not proxy_bypass(url.netloc.decode("ascii"))
