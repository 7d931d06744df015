"""A blob's upload, from asking whether it is there to asking whether it arrived.

Protocol: https://github.com/opencontainers/distribution-spec/blob/main/spec.md#pushing-blobs
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import httpx

from lj_image.oci.digest import Digest
from lj_image.registry.client import Registry
from lj_image.registry.faults import RegistryError, refused, unreachable
from lj_image.registry.uploading.body import BlobBody

Way = Literal["existing", "mounted", "sent"]
"""How a blob came to be in a repository."""
Watch = Callable[[int], None]
"""Is told at which byte of the blob the upload is; it may go back when something has to be sent again."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A blob that is in a repository now."""

    way: Way
    sent_bytes: int = 0
    """All that went out for it, what had to be sent again with it."""


def bring_blob(
    registry: Registry, repository: str, body: BlobBody, *, origin: str = "", watch: Watch = lambda at_byte: None
) -> Arrival:
    """Let a repository have a blob, by the cheapest way there is: it has it, another repository has it, it is sent.

    `origin` is `host/repository` of a registry that has it. Raises RegistryError, ArtifactError for a body that is not
    what its digest says, CutOff.
    """
    digest = body.descriptor.digest
    if registry.has_blob(repository, digest):
        return Arrival("existing")
    host, _, other = origin.partition("/")
    if host == registry.host and other != repository and mount(registry, repository, digest, other):
        return Arrival("mounted")
    return upload(registry, repository, body, watch=watch)


def mount(registry: Registry, repository: str, digest: Digest, origin: str) -> bool:
    """Let a repository have a blob that another one of this registry has; say whether the registry did so."""
    connection, scopes = registry.connection, registry.scopes(repository)
    path = f"{repository}/blobs/uploads/?mount={digest}&from={origin}"
    both = (*scopes, f"repository:{origin}:pull")
    try:
        response = connection.send("POST", path, both, f"mount of {digest} from {origin}")
    except RegistryError as error:
        if error.status is None:
            raise
        return False  # who may not read the other repository uploads
    if response.status_code == 202 and (location := connection.location(response)) is not None:
        with suppress(RegistryError):  # an upload that nobody goes on with ends by itself, too
            connection.send("DELETE", location, scopes, f"upload to {repository}")
    return response.status_code == 201


def upload(registry: Registry, repository: str, body: BlobBody, *, watch: Watch = lambda at_byte: None) -> Arrival:
    """Send a blob; raises as `bring_blob`."""
    connection, attempt, sent = registry.connection, 0, 0
    what = f"blob {repository}@{body.descriptor.digest}"
    while True:
        response: httpx.Response | None = None
        try:
            response = _put(registry, repository, body, watch)
            sent += body.descriptor.size_bytes
            if response.is_success:
                return Arrival("sent", sent)
            failure = refused(response, what)
        except httpx.TransportError as error:
            failure = unreachable(error, connection.host)
        is_lost = response is not None and response.status_code in (401, 404, 416)
        if not connection.wait_before(attempt, None if is_lost else response):
            raise failure
        attempt += 1


def _put(registry: Registry, repository: str, body: BlobBody, watch: Watch) -> httpx.Response:
    connection, scopes = registry.connection, registry.scopes(repository)
    begun = connection.ask("POST", f"{repository}/blobs/uploads/", scopes, f"upload to {repository}")
    location = connection.location(begun)
    if location is None:
        raise refused(begun, f"upload to {repository} without a place for it")
    size = body.descriptor.size_bytes
    url = f"{location}{'&' if '?' in location else '?'}digest=sha256%3A{body.descriptor.digest.hex}"
    headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
    watch(0)
    what = f"blob {repository}@{body.descriptor.digest}"
    answer = connection.send_body("PUT", url, scopes, what, lambda: body.pieces(0, size), headers=headers)
    watch(size)
    return answer
