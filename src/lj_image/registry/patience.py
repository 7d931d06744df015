"""When a request is sent again, and when not before: waits, what a registry asks all to wait for, the deadline."""

from __future__ import annotations

import email.utils
import random
import socket
import ssl
import threading
import time
from collections.abc import Callable
from typing import Final

import httpx

from lj_image.registry.access import Patience
from lj_image.registry.faults import RegistryError, causes_of

TEMPORARY: Final = frozenset({408, 429, 499, 500, 502, 503, 504, *range(520, 525)})
"""499 is nginx's, for a connection lost behind it; 520 to 524 are Cloudflare's, for a server that did not answer."""
_HOLDING: Final = 429
_FIRST_WAIT_S: Final = 1.0
_LONGEST_BACKOFF_S: Final = 30.0
_FEW: Final = 3
"""Attempts where the next one most likely ends the same: no such name, nobody listens, no packet comes back."""


class CutOff(Exception):
    """The connection was told to end."""


class Gate:
    """What all threads that speak with one registry pass before each request. Safe for threads.

    Methods raise CutOff once it was cut off, RegistryError after the deadline.
    """

    def __init__(
        self, host: str, patience: Patience, clock: Callable[[], float], sleep: Callable[[float], None] | None
    ) -> None:
        self._host, self._patience, self._clock = host, patience, clock
        self._stop = threading.Event()
        self._sleep = sleep or self._stop.wait
        self._lock = threading.Lock()
        self._held_until = 0.0
        self._ends_at = float("inf") if patience.deadline_s is None else clock() + patience.deadline_s

    @property
    def is_cut_off(self) -> bool:
        """Whether all has to end."""
        return self._stop.is_set()

    @property
    def left_s(self) -> float:
        """How long it is to the deadline; infinity without one, never less than a moment."""
        return max(0.1, self._ends_at - self._clock())

    def cut_off(self) -> None:
        """Let nobody pass any more, and wake who waits."""
        self._stop.set()

    def check(self) -> None:
        """Say whether there is any use in going on."""
        if self._stop.is_set():
            raise CutOff
        if self._clock() > self._ends_at:
            raise self._too_late()

    def wait_until_open(self) -> None:
        """Wait as long as the registry asked anybody to."""
        self.check()
        waited_for = 0.0
        while (until := self._held_until) != waited_for and until > self._clock():  # another thread may be told later
            waited_for = until
            self._pause(until - self._clock())

    def wait_before(
        self, attempt: int, response: httpx.Response | None = None, error: httpx.TransportError | None = None
    ) -> bool:
        """Wait before another attempt; say False where it would end the same. `attempt` counts from 0."""
        self.check()
        if response is not None and response.status_code not in TEMPORARY:
            return False
        if attempt + 1 >= (self._patience.attempts if error is None else most_attempts(error, self._patience)):
            return False
        told_s = None if response is None else retry_after_s(response)
        wait_s = min(backoff_s(attempt) if told_s is None else told_s, self._patience.longest_wait_s)
        if response is not None and (told_s is not None or response.status_code == _HOLDING):
            self._hold(wait_s)
            self.wait_until_open()
        else:
            self._pause(wait_s)
        return True

    def _hold(self, wait_s: float) -> None:
        with self._lock:
            self._held_until = max(self._held_until, self._clock() + wait_s)

    def _pause(self, wait_s: float) -> None:
        if self._clock() + wait_s > self._ends_at:
            raise self._too_late(f", and wants another {wait_s:,.0f} s of waiting" if wait_s >= 1 else "")
        self._sleep(wait_s)
        self.check()

    def _too_late(self, why: str = "") -> RegistryError:
        return RegistryError(
            f"{self._host} is not done within {self._patience.deadline_s:,.0f} s{why}",
            hint="run the same command again: what is there stays there; `push --deadline` gives it more time",
        )


def backoff_s(attempt: int) -> float:
    """Return a wait at random below a bound that doubles, so that threads and publishers do not return together."""
    return random.uniform(0, min(_FIRST_WAIT_S * 2.0 ** min(attempt, 16), _LONGEST_BACKOFF_S))


def retry_after_s(response: httpx.Response) -> float | None:
    """Read both forms of Retry-After (RFC 9110 §10.2.3); a date counts from the answer's own, as clocks differ.

    None where there is none that can be read.
    """
    told = response.headers.get("Retry-After", "").strip()
    if told.isascii() and told.isdigit():
        return float(told[:9])
    until, now = _moment(told), _moment(response.headers.get("Date", ""))
    return None if until is None else max(0.0, until - (time.time() if now is None else now))


def _moment(date: str) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError, OSError):  # OSError, OverflowError: a date beyond what the machine counts to
        return None


def most_attempts(error: httpx.TransportError, patience: Patience) -> int:
    """Return how often in all a request is tried that ends in such an error."""
    causes = tuple(causes_of(error))
    if isinstance(error, httpx.UnsupportedProtocol | httpx.LocalProtocolError):
        return 1
    if any(isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError) for cause in causes):
        return 1
    if isinstance(error, httpx.ConnectTimeout | httpx.ProxyError):
        return min(_FEW, patience.attempts)
    if any(isinstance(cause, socket.gaierror | ConnectionRefusedError) for cause in causes):
        return min(_FEW, patience.attempts)
    return patience.attempts
