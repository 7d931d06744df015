"""Registries of our own on loopback, each a process with a folder; empty again whenever that is asked."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.measure import Skipped

PROGRAM: Final = "docker-registry"
_PATIENCE_S: Final = 20.0


class Registries:
    """Some registries; their ports stay the same when they are emptied."""

    def __init__(self, folder: Path, count: int) -> None:
        if shutil.which(PROGRAM) is None:
            raise Skipped(f"{PROGRAM} is not installed: scripts/ensure-registry installs it")
        self._folder = folder
        self.ports = tuple(_free_ports(count))
        self._running: list[subprocess.Popen[bytes]] = []

    def empty(self) -> None:
        """Start all anew, without a blob."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._running = [self._start(port) for port in self.ports]
        for port in self.ports:
            _await(port)

    def stop(self) -> None:
        """End all; what they hold stays."""
        for process in self._running:
            process.kill()
            process.wait()
        self._running = []

    def remove(self) -> None:
        """End all, and give the disk back."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self, port: int) -> subprocess.Popen[bytes]:
        folder = self._folder / str(port)
        folder.mkdir(parents=True)
        settings = folder / "config.yml"
        settings.write_text(
            "version: 0.1\nlog: {level: error, accesslog: {disabled: true}}\n"
            f"storage: {{filesystem: {{rootdirectory: {folder}/blobs}}, delete: {{enabled: true}}}}\n"
            f"http: {{addr: '127.0.0.1:{port}'}}\n"
        )
        with (folder / "log").open("wb") as log:
            return subprocess.Popen([PROGRAM, "serve", str(settings)], stdout=log, stderr=subprocess.STDOUT)


@contextmanager
def registries(folder: Path, count: int) -> Iterator[Registries]:
    """Yield registries, and remove them and what they hold at the end; raises Skipped where there is no program."""
    found = Registries(folder, count)
    try:
        yield found
    finally:
        found.remove()


@contextmanager
def slowed(ports: Sequence[int], rates: Sequence[float], cut_after: float = float("inf")) -> Iterator[tuple[int, ...]]:
    """Yield a port for each registry through which so many bytes pass in a second; cut once after so many bytes."""
    ways = [f"{port}:{rate}:{cut_after}" for port, rate in zip(ports, rates, strict=True)]
    with _serving([sys.executable, "-m", "bench.throttle", *ways], subprocess.PIPE) as process:
        assert process.stdout is not None
        yield tuple(json.loads(process.stdout.readline()))


@contextmanager
def faulty(port: int, *arguments: str) -> Iterator[int]:
    """Yield the port of the tests' proxy before a registry, with its faults."""
    script = Path(__file__).parents[1] / "tests/standins/faulty_registry.py"
    command = [sys.executable, str(script), "--upstream", f"http://127.0.0.1:{port}", "--listen", "127.0.0.1:0"]
    process = subprocess.Popen([*command, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        assert process.stderr is not None
        listening = json.loads(process.stderr.readline())["listen"]
        yield int(listening.rpartition(":")[2])
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def report(port: int) -> dict[str, int]:
    """Return the totals of what the proxy has seen."""
    with _opener().open(f"http://127.0.0.1:{port}/_faulty/log", timeout=30) as answer:
        totals: dict[str, int] = json.load(answer)["totals"]
        return totals


@contextmanager
def _serving(command: Sequence[str], stdout: int) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stdout=stdout)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _free_ports(count: int) -> list[int]:
    held = [socket.socket() for _ in range(count)]
    try:
        for listener in held:
            listener.bind(("127.0.0.1", 0))
        return [listener.getsockname()[1] for listener in held]
    finally:
        for listener in held:
            listener.close()


def _await(port: int) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            with _opener().open(f"http://127.0.0.1:{port}/v2/", timeout=5):
                return
        except OSError:
            if time.monotonic() > deadline:
                raise RuntimeError(f"no registry answers at port {port}") from None
            time.sleep(0.05)


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(urllib.request.ProxyHandler({}))
