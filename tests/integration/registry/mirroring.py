"""The command on a machine of its own: nothing but the project's manifests, a config, and registries on loopback."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lj_image.oci.reference import Reference
from lj_image.oci.source import SourceImage
from lj_image.registry.client import Registry as Client
from samples.images import gzipped, image
from standins.publishing import push_image
from standins.registries import Registry

ROOT = Path(__file__).parents[3]
REPOSITORY = "egslingjun/training-nv-pytorch"
TAG = "25.02-open"
RELEASE = ("25.02", "--variant", "open")


@dataclass
class Machine:
    """Runs the command as a person does."""

    folder: Path
    rewrite: dict[str, str] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    project: Path = ROOT

    def environ(self) -> dict[str, str]:
        config = self.folder / "config.yaml"
        self.folder.mkdir(exist_ok=True)
        config.write_text(json.dumps({"endpoints": {"rewrite": self.rewrite, "places": self.places}}))
        own = {
            "LJ_IMAGE_CONFIG": str(config),
            "LJ_IMAGE_CACHE": str(self.folder / "cache"),
            "LJ_IMAGE_STATE": str(self.folder / "state"),
        }
        return os.environ | own | {"DOCKER_HOST": "unix:///absent", "DOCKER_CONFIG": str(self.folder)}

    def start(self, *arguments: str | Path) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "lj_image.cli", *map(str, arguments)]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=self.project, env=self.environ(), stdout=pipe, stderr=pipe, text=True)

    def run(self, *arguments: str | Path) -> Done:
        process = self.start(*arguments)
        try:
            output, errors = process.communicate(timeout=120)
        finally:
            process.kill()
        return Done(process.returncode, output, errors)


@dataclass(frozen=True)
class Done:
    """What a command said."""

    code: int
    output: str
    errors: str

    def states(self) -> list[str]:
        return [target["state"] for target in json.loads(self.output)["targets"]]


def rewriting(registry: str, region: str = "cn-beijing") -> dict[str, str]:
    """Return the rule that puts a registry in a region's place."""
    return {f"acs-registry-vpc.{region}.cr.aliyuncs.com": registry}


def large_image(folder: Path, size_bytes: int) -> SourceImage:
    """Return an image with a layer of so many bytes that compress to no fewer."""
    return image(folder, (os.urandom(size_bytes), b"a small one"), compress=gzipped)


def put(registry: Registry, wanted: SourceImage, prefix: str = "", tag: str = TAG) -> str:
    """Push an image as a release would lie there; return its digest."""
    with Client(registry.address) as client:
        return str(push_image(client, Reference.parse(f"{registry.address}/{prefix}{REPOSITORY}:{tag}"), wanted))


def blobs_of(registry: Registry, digest: str, prefix: str = "") -> dict[str, bool]:
    """Return each blob that a manifest names, and whether it is there."""
    manifest = registry.manifest(f"{prefix}{REPOSITORY}", digest)
    items = (manifest["config"], *manifest["layers"])
    path = f"{prefix}{REPOSITORY}/blobs/"
    return {item["digest"]: registry.get(path + item["digest"], "HEAD").status_code == 200 for item in items}


@contextlib.contextmanager
def faulty(upstream: Registry, *faults: str) -> Iterator[Registry]:
    """Put the proxy that injects faults before a registry; its report is at `/_faulty/log`."""
    program = ROOT / "tests" / "standins" / "faulty_registry.py"
    arguments = [argument for fault in faults for argument in ("--fault", fault)]
    command = [sys.executable, str(program), "--upstream", f"http://{upstream.address}", "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(
        [*command, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, bufsize=1
    )
    assert process.stderr is not None
    try:
        yield Registry(json.loads(process.stderr.readline())["listen"])
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=10)


def report(proxy: Registry) -> dict[str, Any]:
    """Return what passed a proxy."""
    found: dict[str, Any] = proxy.get("../_faulty/log").json()
    return found


class Cutting(socketserver.ThreadingTCPServer):
    """Passes bytes between a client and a registry, and cuts answers that are longer than so many bytes."""

    daemon_threads = True

    def __init__(self, upstream: Registry, after_bytes: int, times: int) -> None:
        self.upstream, self.after_bytes, self.left = upstream, after_bytes, times
        self.passed_bytes = 0
        self.then = upstream.address
        """Whom connections go to after the last cut."""
        super().__init__(("127.0.0.1", 0), _Passing)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> Cutting:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.shutdown()
        self.server_close()


class _Passing(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        server = self.server
        assert isinstance(server, Cutting)
        host, _, port = (server.upstream.address if server.left else server.then).partition(":")
        with socket.create_connection((host, int(port))) as behind, contextlib.suppress(OSError):
            threading.Thread(target=self.forward, args=(behind,), daemon=True).start()
            self.back(behind)

    def forward(self, behind: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while block := self.request.recv(65536):
                behind.sendall(block)

    def back(self, behind: socket.socket) -> None:
        server, passed = self.server, 0
        assert isinstance(server, Cutting)
        while block := behind.recv(65536):
            passed += len(block)
            server.passed_bytes += len(block)
            self.request.sendall(block)
            if server.left and passed > server.after_bytes:
                server.left -= 1
                return
