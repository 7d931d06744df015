"""The requests of one upload, and what the answers say of where it stands.

Protocol: https://github.com/opencontainers/distribution-spec/blob/main/spec.md#pushing-a-blob-in-chunks
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import httpx

from lj_image.registry.client import Registry
from lj_image.registry.faults import RegistryError, refused
from lj_image.registry.uploading.body import BlobBody

_RANGE: Final = re.compile(r"(?:bytes=)?0-(\d+)")
_OCTETS: Final = {"Content-Type": "application/octet-stream"}


@dataclass(slots=True)
class Session:
    """An upload that a registry has open."""

    location: str
    """Where it goes on, the newest that the registry gave; who knows it may write, so it is shown to nobody."""
    offset: int = 0
    """How many bytes the registry has, as far as it said."""
    least_chunk_bytes: int = 0
    """Of every chunk but the last."""


class Uploads:
    """The uploads of one repository; counts what goes out."""

    def __init__(self, registry: Registry, repository: str, body: BlobBody) -> None:
        self._connection, self._registry = registry.connection, registry
        self._repository, self._body = repository, body
        self._scopes = registry.scopes(repository)
        self.what = f"blob {repository}@{body.descriptor.digest}"
        self.sent_bytes = 0

    def begin(self) -> Session:
        """Open an upload; raises RegistryError."""
        what = f"upload to {self._repository}"
        begun = self._connection.ask("POST", f"{self._repository}/blobs/uploads/", self._scopes, what)
        location = self._connection.location(begun)
        if location is None:
            raise refused(begun, f"{what} without a place for it")
        least = begun.headers.get("OCI-Chunk-Min-Length", "")
        return Session(location, 0, int(least) if least.isdigit() else 0)

    def find(self, session: Session) -> Session | None:
        """Ask where an upload stands; None where the registry does not know it, or does not say. Raises RegistryError.

        Of `Range: 0-0` nobody knows whether it is a byte or none, so it is taken for none.
        """
        response = self._connection.send("GET", session.location, self._scopes, f"state of the {self.what}")
        if response.status_code not in (200, 202, 204):
            return None
        found = _last_byte(response)
        offset = 0 if not found else found + 1
        if offset > self._body.descriptor.size_bytes:
            return None
        return Session(self._connection.location(response) or session.location, offset, session.least_chunk_bytes)

    def patch(self, session: Session, end: int, *, with_range: bool) -> httpx.Response:
        """Send the bytes from where an upload stands up to `end`; raises httpx.TransportError where no answer came."""
        size = end - session.offset
        headers = {**_OCTETS, "Content-Length": str(size)}
        if with_range:
            headers["Content-Range"] = f"{session.offset}-{end - 1}"  # both inclusive, and no unit before them
        return self._send("PATCH", session.location, session.offset, end, headers)

    def put(self, session: Session, start: int) -> httpx.Response:
        """End an upload by the digest, with the bytes from `start` on; raises as `patch`."""
        size = self._body.descriptor.size_bytes
        url = _with_digest(session.location, self._body.descriptor.digest.hex)
        headers = {**_OCTETS, "Content-Length": str(size - start)}
        return self._send("PUT", url, start, size, headers, self._connection.access.patience.commit_s)

    def cancel(self, session: Session) -> None:
        """Let an upload go, as far as the registry likes; one that nobody goes on with ends by itself, too."""
        with suppress(RegistryError):
            self._connection.send("DELETE", session.location, self._scopes, f"upload to {self._repository}")

    def _send(
        self, method: str, url: str, start: int, end: int, headers: dict[str, str], read_s: float | None = None
    ) -> httpx.Response:
        def content() -> Iterator[bytes]:
            for piece in self._body.pieces(start, end):
                self.sent_bytes += len(piece)
                yield piece

        return self._connection.send_body(method, url, self._scopes, self.what, content, headers=headers, read_s=read_s)


def accepted(session: Session, response: httpx.Response, end: int, location: str | None) -> Session:
    """Return where an upload stands after a chunk up to `end` was taken.

    A registry that has less than was sent gets the rest again; one whose range stands still although it says that all
    is well (ECR) is believed, as the digest decides in the end.
    """
    found = _last_byte(response)
    offset = end if found is None or found + 1 <= session.offset else min(found + 1, end)
    return Session(location or session.location, offset, session.least_chunk_bytes)


def _last_byte(response: httpx.Response) -> int | None:
    found = _RANGE.fullmatch(response.headers.get("Range", "").strip())
    return int(found[1]) if found else None


def _with_digest(location: str, hexadecimal: str) -> str:
    """Add the digest to an address, whose own query stays as it is: it may be signed."""
    return f"{location}{'&' if '?' in location else '?'}digest=sha256%3A{hexadecimal}"
