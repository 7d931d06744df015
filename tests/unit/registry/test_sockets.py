"""What lies below HTTP: what all registries of a process share."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from lj_image.registry import sockets
from lj_image.registry.access import Access


def test_threads_that_ask_at_once_read_once_what_the_machine_trusts(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []

    def slowly(environ: object) -> object:
        time.sleep(0.05)
        made.append(environ)
        return object()

    monkeypatch.setattr(sockets, "ssl_context", slowly)
    sockets._shared_context.cache_clear()
    together = threading.Barrier(6)

    def ask(number: int) -> object:
        together.wait()
        return sockets.tls_context(Access(f"r{number}.example"), {})

    try:
        with ThreadPoolExecutor(6) as pool:
            found = set(pool.map(ask, range(6)))
    finally:
        sockets._shared_context.cache_clear()
    assert (len(found), len(made)) == (1, 1)
