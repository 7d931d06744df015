"""A registry that misbehaves on purpose: the fault proxy as a process before a real one, and what it has seen."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROXY = Path(__file__).with_name("faulty_registry.py")


@dataclass(frozen=True)
class Faulty:
    """A proxy that is running."""

    address: str

    def report(self) -> dict[str, Any]:
        """Return all that it has seen so far."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://{self.address}/_faulty/log", timeout=30) as answer:
            found: dict[str, Any] = json.load(answer)
            return found

    @property
    def totals(self) -> dict[str, Any]:
        """Return its sums."""
        found: dict[str, Any] = self.report()["totals"]
        return found

    @property
    def received_bytes(self) -> int:
        """Return how many bytes of blobs were sent to it, whatever became of them."""
        return int(self.totals["blob_bytes_received"])

    def requests(self, kind: str) -> list[dict[str, Any]]:
        """Return the requests of one kind, in their order."""
        return [entry for entry in self.report()["requests"] if entry["kind"] == kind]


@contextmanager
def faulty(registry: str, *faults: str, resumable: bool = False, user: str = "") -> Iterator[Faulty]:
    """Run the proxy before a registry at HOST:PORT, with these faults."""
    upstream = f"http://127.0.0.1:{registry.rpartition(':')[2]}"
    command = [sys.executable, str(PROXY), "--upstream", upstream, "--listen", "127.0.0.1:0"]
    for fault in faults:
        command += ["--fault", fault]
    command += ["--resumable"] if resumable else []
    command += ["--user", user] if user else []
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        assert process.stderr is not None
        yield Faulty(json.loads(process.stderr.readline())["listen"])
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
        process.stderr.close()
