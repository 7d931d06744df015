"""A registry behind TLS, with certificates of a CA that nobody else knows; made by openssl."""

from __future__ import annotations

import http.client
import shutil
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from standins.registries import free_port


@dataclass(frozen=True)
class Certificates:
    """A CA, and what it has signed; each with its key at `.key`."""

    folder: Path

    @property
    def ca(self) -> Path:
        return self.folder / "ca.pem"

    @property
    def client(self) -> Path:
        return self.folder / "client.pem"


def certificates(folder: Path) -> Certificates:
    """Make a CA, a certificate for this machine, and one for a client."""
    folder.mkdir(parents=True, exist_ok=True)
    _openssl(folder, "req", "-x509", *_new("ca"), "-subj", "/CN=a test's CA", "-days", "2")
    ours = "DNS:localhost,DNS:registry.invalid,IP:127.0.0.1"
    for name, names in (("server", ours), ("client", "DNS:client.example")):
        (folder / f"{name}.cnf").write_text(f"subjectAltName={names}\n")
        _openssl(folder, "req", *_new(name, f"{name}.csr"), "-subj", f"/CN={name}")
        signing = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", f"{name}.cnf")
        _openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-out", f"{name}.pem", *signing)
    return Certificates(folder)


@contextmanager
def running_with_tls(folder: Path, made: Certificates, *, wants_client: bool = False) -> Iterator[str]:
    """Run a registry behind TLS at an address, HOST:PORT; with `wants_client` it lets in whom the CA has signed."""
    program = shutil.which("docker-registry")
    if program is None:
        pytest.skip("docker-registry is not installed: scripts/ensure-registry installs it")
    port, keys = free_port(), made.folder
    folder.mkdir(parents=True, exist_ok=True)
    clients = f", clientcas: ['{made.ca}']" if wants_client else ""
    (folder / "config.yml").write_text(
        f"version: 0.1\nlog: {{level: warn}}\nstorage: {{filesystem: {{rootdirectory: {folder}/blobs}}}}\n"
        f"http: {{addr: '127.0.0.1:{port}', "
        f"tls: {{certificate: '{keys}/server.pem', key: '{keys}/server.key'{clients}}}}}\n"
    )
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, "serve", str(folder / "config.yml")], stdout=log, stderr=subprocess.STDOUT)
    try:
        _await(port, made)
        yield f"localhost:{port}"
    finally:
        process.kill()
        process.wait()


def _await(port: int, made: Certificates) -> None:
    context = ssl.create_default_context(cafile=made.ca)
    context.load_cert_chain(made.client, made.client.with_suffix(".key"))
    deadline = time.monotonic() + 20
    while True:
        try:
            connection = http.client.HTTPSConnection("localhost", port, context=context, timeout=5)
            connection.request("GET", "/v2/")
            assert connection.getresponse().status == 200
        except OSError:
            assert time.monotonic() < deadline, "the registry does not start"
            time.sleep(0.05)
        else:
            return
        finally:
            connection.close()


def _new(name: str, out: str = "") -> tuple[str, ...]:
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    return (*curve, "-keyout", f"{name}.key", "-out", out or f"{name}.pem")


def _openssl(folder: Path, *arguments: str) -> None:
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("openssl is not installed")
    subprocess.run([program, *arguments], cwd=folder, check=True, capture_output=True)
