"""What 25.02 takes from elsewhere: the vendor's index behind a password, the public one, and the ACCL-N archive."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from standins.libraries import NCCL_OF_ACCL, compiled
from standins.wheels import module, wheel
from unit.lock.loopback import Loopback, start

USER: Final = "release-engineer"
PASSWORD: Final = "hunter2-but-longer-and-not-a-word"
ACCL_ARCHIVE: Final = "accl-n-2.23.4.11-linux-amd64.tar.gz"


def offer(index: Loopback, name: str, version: str, *requires: str, payload: bytes = b"") -> bytes:
    """Put a wheel with one importable module on an index and return its bytes."""
    files = module(name.replace("-", "_"), version) | ({f"{name}/payload": payload} if payload else {})
    file, content = wheel(name, version, files, requires)
    index.projects.setdefault(name, {})[file] = content
    return content


def vendor_index() -> Loopback:
    """Return the vendor's: its own builds, made against the base's torch."""
    index = Loopback(credentials=(USER, PASSWORD))
    offer(index, "transformers", "4.48.3+ali", "tokenizers>=0.21,<0.22", "numpy>=1.17", "pyyaml>=5.1", "filelock")
    # The base's torch is a pre-release, which resolvers pass over: a careless one takes 2.6.0 from the public index.
    offer(index, "vllm", "0.7.2", "torch>=2.5", "pyyaml", "tokenizers")
    return index


def public_index() -> Loopback:
    """Return the public one: what the releases need of it, and bait that a careless resolver would take."""
    index = Loopback()
    offer(index, "ray", "2.42.1", "filelock", "pyyaml", "msgpack>=1,<2")
    offer(index, "pyyaml", "6.0.2")
    offer(index, "msgpack", "1.1.0")
    offer(index, "tokenizers", "0.21.0")
    for bait, version in (("transformers", "4.48.3"), ("vllm", "0.7.2"), ("torch", "2.6.0"), ("torch", "2.5.1")):
        offer(index, bait, version)
    offer(index, "numpy", "2.2.3")
    offer(index, "filelock", "3.17.0")
    return index


def archives() -> Loopback:
    """Return the server of the vendor's archives."""
    return Loopback(archives={ACCL_ARCHIVE: accl_archive()})


def accl_archive() -> bytes:
    """Return ACCL-N: NCCL 2.23.4 with a build number, below one folder that is stripped."""
    tar_bytes = io.BytesIO()
    with tarfile.open(fileobj=tar_bytes, mode="w", format=tarfile.GNU_FORMAT) as tar:
        library = compiled(NCCL_OF_ACCL)
        for path, content, mode in (
            ("lib/libnccl.so.2.23.4", library, 0o755),
            ("include/nccl.h", b"#define NCCL_VERSION_CODE 22304\n", 0o644),
        ):
            member = tarfile.TarInfo(f"accl-n-2.23.4.11/{path}")
            member.size, member.mode = len(content), mode
            tar.addfile(member, io.BytesIO(content))
        link = tarfile.TarInfo(f"accl-n-2.23.4.11/lib/{NCCL_OF_ACCL.soname}")
        link.type, link.linkname = tarfile.SYMTYPE, "libnccl.so.2.23.4"
        tar.addfile(link)
    return gzip.compress(tar_bytes.getvalue(), mtime=0)


@contextmanager
def served(*servers: Loopback) -> Iterator[None]:
    """Serve each on a loopback port of its own."""
    running = [start(server) for server in servers]
    try:
        yield
    finally:
        for server in running:
            server.shutdown()
            server.server_close()
