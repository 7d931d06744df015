"""What a repository has, and what another repository of the same registry can let it have."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import httpx

from lj_image.oci.descriptor import Descriptor
from lj_image.oci.digest import Digest
from lj_image.registry.client import Registry
from lj_image.registry.faults import RegistryError, refused

_UNANSWERED: Final = (401, 403)
"""Some registries refuse the question, and take the blob: the upload decides."""


def is_present(registry: Registry, repository: str, descriptor: Descriptor) -> bool:
    """Say whether a repository has a blob, all of it; raises RegistryError."""
    response = ask_for(registry, repository, descriptor.digest)
    if response is None or response.status_code == 404:
        return False
    length = response.headers.get("Content-Length", "")
    return not length.isdigit() or int(length) == descriptor.size_bytes


def ask_for(registry: Registry, repository: str, digest: Digest) -> httpx.Response | None:
    """Return the answer to a question for a blob, 200 or 404; None where the registry refuses to say."""
    what, path = f"blob {repository}@{digest}", f"{repository}/blobs/{digest}"
    try:
        response = registry.connection.send("HEAD", path, registry.scopes(repository), what)
    except RegistryError as error:
        if error.status in _UNANSWERED:
            return None
        raise
    if response.status_code in _UNANSWERED:
        return None
    if response.status_code not in (200, 404):
        raise refused(response, what)
    return response


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
