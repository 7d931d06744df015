"""What is to be published, wherever it lies: documents in the order in which registries take them, and blobs.

A registry takes a manifest only when it has all that the manifest names, and an index only after its manifests
(distribution spec, "Pushing Manifests").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO

from lj_image.errors import ArtifactError
from lj_image.oci.copying import described
from lj_image.oci.descriptor import Descriptor
from lj_image.oci.manifest import Index, Manifest
from lj_image.oci.source import SourceImage, SourceLayer, Stream, with_manifest
from lj_image.oci.streams import BLOCK_BYTES


@dataclass(frozen=True, slots=True)
class Document:
    """A manifest or an index, byte for byte."""

    descriptor: Descriptor
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Blob:
    """A layer or a configuration, which nobody has read yet."""

    descriptor: Descriptor
    open_at: Callable[[int], Stream] = field(repr=False, compare=False)
    """Opens it at an offset in bytes, anew each time; raises ArtifactError."""
    origin: str = ""
    """`host/repository` of a registry that has it; empty where none is known."""


@dataclass(frozen=True, slots=True)
class Content:
    """An image, or an index of several."""

    name: str
    """A path or a reference, for messages."""
    documents: tuple[Document, ...]
    """Each before those that name it, so the last one is what a tag points to."""
    blobs: tuple[Blob, ...]
    """Each once."""
    referrers: tuple[Content, ...] = ()
    """What says something about its documents, and about each other: signatures, bills of materials."""

    @property
    def root(self) -> Document:
        """What a tag points to."""
        return self.documents[-1]

    @property
    def size_bytes(self) -> int:
        """Of all blobs."""
        return sum(blob.descriptor.size_bytes for blob in self.blobs)


def content_of(image: SourceImage) -> Content:
    """Return an image as what is published; one without a manifest gets one of ours. Raises ArtifactError."""
    found = with_manifest(image)
    return Content(found.name, (_document(found),), _distinct(_blobs(found)))


def content_of_images(images: Iterable[SourceImage], name: str) -> Content:
    """Return images of several platforms as an index of them."""
    found = tuple(map(with_manifest, images))
    documents = tuple(map(_document, found))
    index = Index(tuple(map(described, found)))
    root = Document(index.descriptor(), index.to_bytes())
    return Content(name, (*documents, root), _distinct(blob for image in found for blob in _blobs(image)))


def _document(image: SourceImage) -> Document:
    if image.manifest is None or image.descriptor is None:
        raise ArtifactError(f"{image.name} has no manifest")
    return Document(image.descriptor, image.manifest)


def _blobs(image: SourceImage) -> Iterable[Blob]:
    manifest = Manifest.parse(image.manifest or b"", f"the manifest of {image.name}")
    for layer in image.layers:
        if layer.descriptor is not None and not layer.descriptor.urls:
            yield Blob(layer.descriptor, partial(_open_layer, layer), layer.origin)
    yield Blob(manifest.config, partial(_open_bytes, image.config))


def _distinct(blobs: Iterable[Blob]) -> tuple[Blob, ...]:
    return tuple({blob.descriptor.digest: blob for blob in blobs}.values())


def _open_layer(layer: SourceLayer, offset: int) -> Stream:
    if layer.open_at is not None:
        return layer.open_at(offset)
    if layer.file is not None and layer.file.exists():
        file = layer.file.open("rb")
        file.seek(offset)
        return file
    stream = layer.open()
    while offset:  # where it lies, nothing can be skipped
        passed = len(stream.read(min(offset, BLOCK_BYTES)))
        if not passed:
            break
        offset -= passed
    return stream


def _open_bytes(content: bytes, offset: int) -> Stream:
    return BytesIO(content[offset:])
