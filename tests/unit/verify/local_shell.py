"""Stand-ins for a container: a shell on this machine, behind the interfaces that verify talks to."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
from contextlib import suppress

from lj_image.verify.frames import HEADER, STDERR, STDOUT, Output


class LocalShell:
    """Runs commands on this machine, as a container would."""

    name = "local"
    gpu = False

    def run(self, command: str | bytes, *, stdin: str | None = None, timeout_s: float = 60) -> Output:
        done = subprocess.run(
            ["sh", "-c", command], input=(stdin or "").encode(), capture_output=True, timeout=timeout_s, check=False
        )
        return Output(done.returncode, done.stdout, done.stderr)


class LocalEngine:
    """A shell on this machine whose output arrives in an engine's frames; `pipe` is the client's end."""

    def __init__(self) -> None:
        self.pipe, self._far = socket.socketpair()
        self._lock = threading.Lock()
        self._shell = subprocess.Popen(
            ["sh"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self._pumps = [
            threading.Thread(target=self._pump, args=(STDOUT, self._shell.stdout), daemon=True),
            threading.Thread(target=self._pump, args=(STDERR, self._shell.stderr), daemon=True),
        ]
        for thread in (*self._pumps, threading.Thread(target=self._feed, daemon=True)):
            thread.start()

    def _feed(self) -> None:
        with suppress(OSError):
            while received := self._far.recv(65536):
                self._shell.stdin.write(received)
        self._kill()

    def _kill(self) -> None:
        """End the shell and whatever it has started."""
        with suppress(ProcessLookupError):
            os.killpg(self._shell.pid, signal.SIGKILL)

    def _pump(self, stream: int, source: object) -> None:
        while piece := source.read(32768):
            with self._lock, suppress(OSError):
                self._far.sendall(HEADER.pack(stream, len(piece)) + piece)
        if self._shell.wait() is not None:
            with suppress(OSError):
                self._far.shutdown(socket.SHUT_RDWR)

    def stop(self) -> None:
        self.pipe.close()
        self._kill()
        self._shell.wait()
        for thread in self._pumps:
            thread.join()
        for file in (self._shell.stdin, self._shell.stdout, self._shell.stderr, self._far):
            file.close()
