"""An image, wherever it lies -> a repository: what is missing there goes first, the tag last, and is read back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from io import BytesIO
from typing import Literal, Protocol

from lj_image.errors import ArtifactError, UsageError
from lj_image.oci.copying import described
from lj_image.oci.descriptor import Descriptor
from lj_image.oci.digest import Digest
from lj_image.oci.manifest import Index
from lj_image.oci.media_types import MediaType
from lj_image.oci.reference import Reference
from lj_image.oci.source import SourceImage, Stream, with_manifest
from lj_image.registry.client import Registry
from lj_image.registry.faults import RegistryError

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
class _Blob:
    digest: Digest
    size_bytes: int
    open: Callable[[], Stream]
    origin: str = ""


def push_image(registry: Registry, reference: Reference, image: SourceImage, watcher: Watcher | None = None) -> Digest:
    """Push an image under a tag and return its manifest's digest, as the registry says it back.

    Raises RegistryError where the registry refuses, does not answer or has something else afterwards; ArtifactError
    where a layer cannot be read.
    """
    tag = _tag(reference)
    found = with_manifest(image)
    send_image(registry, reference.repository, found, watcher)
    descriptor = described(found)
    registry.put_manifest(reference.repository, tag, found.manifest or b"", descriptor.media_type)
    return _read_back(registry, reference, descriptor)


def push_index(
    registry: Registry, reference: Reference, images: Iterable[SourceImage], watcher: Watcher | None = None
) -> Digest:
    """Push images of several platforms, and then the index of them under a tag; as `push_image`."""
    tag, found = _tag(reference), tuple(map(with_manifest, images))
    for image in found:
        send_image(registry, reference.repository, image, watcher)
        digest = described(image).digest
        registry.put_manifest(reference.repository, str(digest), image.manifest or b"", described(image).media_type)
    index = Index(tuple(map(described, found)))
    registry.put_manifest(reference.repository, tag, index.to_bytes(), MediaType.OCI_INDEX)
    return _read_back(registry, reference, index.descriptor())


def send_image(registry: Registry, repository: str, image: SourceImage, watcher: Watcher | None = None) -> None:
    """Send the blobs that a repository lacks; no tag moves."""
    layers = (
        _Blob(item.digest, item.size_bytes, layer.open, layer.origin)
        for layer in image.layers
        if (item := layer.descriptor)
    )
    config = _Blob(image.image_id, len(image.config), lambda: BytesIO(image.config))
    for blob in {blob.digest: blob for blob in (*layers, config)}.values():
        _send(registry, repository, blob, watcher or Unwatched())


def _send(registry: Registry, repository: str, blob: _Blob, watcher: Watcher) -> None:
    if registry.has_blob(repository, blob.digest):
        watcher.blob(blob.digest, "there", 0, blob.size_bytes)
        return
    host, _, origin = blob.origin.partition("/")
    if host == registry.host and origin != repository and registry.mount(repository, blob.digest, origin):
        watcher.blob(blob.digest, "mounted", 0, blob.size_bytes)
        return
    registry.upload(
        repository,
        blob.digest,
        blob.size_bytes,
        blob.open,
        lambda sent_bytes: watcher.blob(blob.digest, "sending", sent_bytes, blob.size_bytes),
    )
    watcher.blob(blob.digest, "sent", blob.size_bytes, blob.size_bytes)


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
