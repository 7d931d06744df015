"""A registry of one test run, asked by HTTP: what it says is what everyone who pulls gets."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs
import pytest
import requests

MANIFEST_TYPES = ", ".join(
    (
        "application/vnd.docker.distribution.manifest.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.oci.image.index.v1+json",
    )
)


@dataclass(frozen=True)
class Registry:
    """A registry at a loopback address, which engines accept without TLS."""

    address: str
    program: str = "docker-registry"

    def get(self, path: str, method: str = "GET", **headers: str) -> requests.Response:
        """Ask the registry itself, past engine and product."""
        with requests.Session() as session:
            session.trust_env = False  # no proxy leads to loopback
            return session.request(method, f"http://{self.address}/v2/{path}", headers=headers, timeout=10)

    def digest(self, repository: str, tag: str) -> str | None:
        """Return the digest under a tag, None without one."""
        answer = self.get(f"{repository}/manifests/{tag}", "HEAD", Accept=MANIFEST_TYPES)
        return answer.headers["Docker-Content-Digest"] if answer.status_code == 200 else None

    def manifest(self, repository: str, reference: str) -> dict[str, Any]:
        """Return a manifest by tag or digest."""
        answer = self.get(f"{repository}/manifests/{reference}", Accept=MANIFEST_TYPES)
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
        return found


PROGRAMS = ("docker-registry", "crane")
"""Implementations that share no code: distribution 2.8 of Debian, and the registry that comes with crane."""


@contextmanager
def running(folder: Path, *, htpasswd: str = "", program: str = "docker-registry") -> Iterator[Registry]:
    """Run a registry whose files lie in a folder; with a line of htpasswd docker-registry wants that login."""
    address = f"localhost:{free_port()}"
    command = _crane(address) if program == "crane" else _distribution(folder, address, htpasswd)
    registry = Registry(address, program)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        _await(registry)
        yield registry
    finally:
        process.kill()
        process.wait()


def _distribution(folder: Path, address: str, htpasswd: str) -> list[str]:
    program = shutil.which("docker-registry")
    if program is None:
        pytest.skip("docker-registry is not installed: scripts/ensure-registry installs it")
    settings = folder / "config.yml"
    settings.write_text(
        "version: 0.1\nlog: {level: warn}\n"
        f"storage: {{filesystem: {{rootdirectory: {folder}/blobs}}, delete: {{enabled: true}}}}\n"
        f"http: {{addr: '127.0.0.1:{address.partition(':')[2]}'}}\n"
        + (f"auth: {{htpasswd: {{realm: test, path: {folder}/htpasswd}}}}\n" if htpasswd else "")
    )
    (folder / "htpasswd").write_text(f"{htpasswd}\n")
    return [program, "serve", str(settings)]


def _crane(address: str) -> list[str]:
    tools = Path(platformdirs.user_cache_dir("lj-image")) / "tools"  # where scripts/ensure-crane puts it
    program = shutil.which("crane") or shutil.which(str(tools / "crane"))
    if program is None:
        pytest.skip("crane is not here: scripts/ensure-crane gets it")
    return [program, "registry", "serve", "--address", address]


def free_port() -> int:
    """Return a port that is free on loopback now."""
    with socket.socket() as candidate:
        candidate.bind(("127.0.0.1", 0))
        return int(candidate.getsockname()[1])


def _await(registry: Registry) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            answer = registry.get("")
            if answer.status_code != 401:  # which a login turns into an answer
                answer.raise_for_status()
        except requests.RequestException:
            assert time.monotonic() < deadline, "the registry does not start"
            time.sleep(0.05)
        else:
            return
