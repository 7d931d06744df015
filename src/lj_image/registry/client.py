"""One registry's repositories: manifests, tags, blobs. Uploads are the room `uploading`.

Protocol: https://github.com/opencontainers/distribution-spec/blob/main/spec.md
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, Self

import httpx

from lj_image.errors import ArtifactError
from lj_image.oci.capabilities import Capabilities
from lj_image.oci.descriptor import Descriptor
from lj_image.oci.digest import Digest
from lj_image.oci.manifest import LARGEST_BYTES
from lj_image.oci.media_types import MediaType
from lj_image.oci.source import Stream
from lj_image.oci.values import Value
from lj_image.registry.access import Access
from lj_image.registry.blob_stream import BlobStream
from lj_image.registry.connection import Connection
from lj_image.registry.credentials import Credentials, credentials_for
from lj_image.registry.faults import RegistryError, refused

MANIFEST_TYPES: Final = (
    MediaType.OCI_INDEX,
    MediaType.OCI_MANIFEST,
    MediaType.DOCKER_LIST,
    MediaType.DOCKER_MANIFEST,
)
Intent = Literal["pull", "push"]


@dataclass(frozen=True, slots=True)
class FetchedManifest:
    """A manifest or index as a registry gives it, its digest found right."""

    content: bytes
    descriptor: Descriptor


class Registry:
    """A registry. Methods raise RegistryError, a PublishError, where it refuses or does not answer.

    Whoever is going to push says so at once: a login for pulling is refused by registries which make a repository no
    sooner than it is pushed to.
    """

    def __init__(
        self,
        host: str | Access,
        *,
        intent: Intent = "pull",
        capabilities: Capabilities | None = None,
        credentials: Callable[[str], Credentials | None] = credentials_for,
        transport: httpx.BaseTransport | None = None,
        environ: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        access = Access(host) if isinstance(host, str) else host
        self.host = access.host
        self.capabilities = capabilities or Capabilities()
        self.connection = Connection(
            access, credentials=credentials, transport=transport, environ=environ, clock=clock, sleep=sleep
        )
        self._intent = intent

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self.connection.close()

    def scopes(self, repository: str) -> tuple[str, ...]:
        """Return what a login is asked for, for all that is done in a repository."""
        actions = "pull,push" if self._intent == "push" else "pull"
        return (f"repository:{repository}:{actions}",)

    def manifest(self, repository: str, wanted: str) -> FetchedManifest:
        """Return the manifest or index of a tag or digest; raises ArtifactError for one that is not that of the digest.

        A thing that is not there is a RegistryError whose `is_absence` is true.
        """
        what, headers = _manifest_words(repository, wanted), {"Accept": ", ".join(MANIFEST_TYPES)}
        response = self.connection.ask(
            "GET", f"{repository}/manifests/{wanted}", self.scopes(repository), what, headers=headers
        )
        content = response.content
        said = wanted if ":" in wanted else response.headers.get("Docker-Content-Digest")
        if len(content) > LARGEST_BYTES or (said is not None and str(Digest.of(content)) != said):
            raise ArtifactError(f"{self.host} delivers another {what} than that of {said}", hint="try again, or later")
        typed = response.headers.get("Content-Type", "").partition(";")[0].strip()
        media_type = Value.parse(content, what)["mediaType"].text(typed)
        return FetchedManifest(content, Descriptor(media_type, Digest.of(content), len(content)))

    def head(self, repository: str, wanted: str) -> Digest | None:
        """Return the digest under a tag; None where the registry says that there is none.

        What is not surely absent is an error: a tag that is taken for absent would be written over.
        """
        path, headers = f"{repository}/manifests/{wanted}", {"Accept": ", ".join(MANIFEST_TYPES)}
        what = _manifest_words(repository, wanted)
        response = self.connection.send("HEAD", path, self.scopes(repository), what, headers=headers)
        said = response.headers.get("Docker-Content-Digest")
        if response.is_success and said:
            return Digest.parse(said)
        try:  # an answer to HEAD has no words, and some registries do not tell the digest
            return self.manifest(repository, wanted).descriptor.digest
        except RegistryError as error:
            if error.is_absence:
                return None
            raise

    def put_manifest(self, repository: str, wanted: str, content: bytes, media_type: str) -> Digest:
        """Store a manifest under a tag or its digest; return its digest. The blobs that it names have to be there."""
        what, headers = _manifest_words(repository, wanted), {"Content-Type": media_type}
        path = f"{repository}/manifests/{wanted}"
        response = self.connection.ask("PUT", path, self.scopes(repository), what, headers=headers, content=content)
        digest, said = Digest.of(content), response.headers.get("Docker-Content-Digest")
        if said is not None and said != str(digest):
            raise RegistryError(f"{self.host} stored {what} as {said} instead of {digest}", hint="push again")
        return digest

    def has_blob(self, repository: str, digest: Digest) -> bool:
        """Say whether a repository has a blob."""
        what = f"blob {repository}@{digest}"
        response = self.connection.send("HEAD", f"{repository}/blobs/{digest}", self.scopes(repository), what)
        if response.status_code not in (200, 404):
            raise refused(response, what)
        return response.status_code == 200

    def open_blob(self, repository: str, descriptor: Descriptor, offset: int = 0) -> Stream:
        """Open a blob, and take a lost connection up where it ended.

        What is read from its beginning is held against its digest; from an offset on, the reader has to do that.
        """
        open_from = partial(self._open_blob, repository, descriptor.digest)
        wait_before = self.connection.wait_before
        return BlobStream(descriptor, f"{self.host}/{repository}", open_from, wait_before, offset)

    def _open_blob(self, repository: str, digest: Digest, offset: int) -> httpx.Response:
        what, headers = f"blob {repository}@{digest}", {"Range": f"bytes={offset}-"} if offset else {}
        path = f"{repository}/blobs/{digest}"
        response = self.connection.send("GET", path, self.scopes(repository), what, headers=headers, is_stream=True)
        if response.status_code == (206 if offset else 200):
            return response
        self.connection.read(response)
        raise refused(response, what)


def _manifest_words(repository: str, wanted: str) -> str:
    return f"manifest {repository}{'@' if ':' in wanted else ':'}{wanted}"
