"""An image, wherever it lies -> a repository: what is missing there goes first, the tag last, and is read back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

from lj_image.errors import ArtifactError, UsageError
from lj_image.oci.content import Blob, Content, content_of, content_of_images
from lj_image.oci.descriptor import Descriptor
from lj_image.oci.digest import Digest
from lj_image.oci.reference import Reference
from lj_image.oci.source import SourceImage
from lj_image.registry.client import Registry
from lj_image.registry.faults import RegistryError
from lj_image.registry.uploading.body import pieces_of
from lj_image.registry.uploading.upload import bring_blob

BlobState = Literal["there", "mounted", "sending", "sent"]


class Watcher(Protocol):
    """Sees blobs go to a registry."""

    def blob(self, digest: Digest, state: BlobState, sent_bytes: int, size_bytes: int) -> None:
        """See a blob in a new state, or further on; an attempt that failed begins again at 0."""


class Unwatched:
    """Sees nothing."""

    def blob(self, digest: Digest, state: BlobState, sent_bytes: int, size_bytes: int) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class _OneReader:
    blob: Blob

    @property
    def descriptor(self) -> Descriptor:
        return self.blob.descriptor

    def pieces(self, start: int, end: int) -> Iterable[bytes]:
        with self.blob.open_at(start) as stream:
            yield from pieces_of(stream, end - start, f"blob {self.descriptor.digest}")


def push_image(registry: Registry, reference: Reference, image: SourceImage, watcher: Watcher | None = None) -> Digest:
    """Push an image under a tag and return its manifest's digest, as the registry says it back.

    Raises RegistryError where the registry refuses, does not answer or has something else afterwards; ArtifactError
    where a layer cannot be read.
    """
    return _push(registry, reference, content_of(image), watcher or Unwatched())


def push_index(
    registry: Registry, reference: Reference, images: Iterable[SourceImage], watcher: Watcher | None = None
) -> Digest:
    """Push images of several platforms, and then the index of them under a tag; as `push_image`."""
    return _push(registry, reference, content_of_images(images, str(reference)), watcher or Unwatched())


def _push(registry: Registry, reference: Reference, content: Content, watcher: Watcher) -> Digest:
    tag = _tag(reference)
    for blob in content.blobs:
        _send(registry, reference.repository, blob, watcher)
    for document in content.documents[:-1]:
        digest, media_type = document.descriptor.digest, document.descriptor.media_type
        registry.put_manifest(reference.repository, str(digest), document.content, media_type)
    registry.put_manifest(reference.repository, tag, content.root.content, content.root.descriptor.media_type)
    return _read_back(registry, reference, content.root.descriptor)


def _send(registry: Registry, repository: str, blob: Blob, watcher: Watcher) -> None:
    digest, size = blob.descriptor.digest, blob.descriptor.size_bytes

    def watch(at_byte: int) -> None:
        watcher.blob(digest, "sending", at_byte, size)

    arrival = bring_blob(registry, repository, _OneReader(blob), origin=blob.origin, watch=watch)
    state: BlobState = "there" if arrival.way == "existing" else arrival.way
    watcher.blob(digest, state, size if state == "sent" else 0, size)


def _tag(reference: Reference) -> str:
    if reference.digest is not None:
        raise UsageError(f"{reference} names a digest, and a push gives a tag", hint="name a tag alone")
    return reference.tag or "latest"


def _read_back(registry: Registry, reference: Reference, pushed: Descriptor) -> Digest:
    try:
        held = registry.manifest(reference.repository, _tag(reference)).descriptor.digest
    except ArtifactError as error:
        raise RegistryError(error.message, hint=error.hint) from None
    if held != pushed.digest:
        raise RegistryError(
            f"{reference} holds {held} instead of {pushed.digest}, which was pushed a moment ago",
            hint="somebody else pushes to this tag, or the registry rewrites manifests",
        )
    return held
