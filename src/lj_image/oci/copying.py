"""An image from wherever it lies into a layout."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lj_image.errors import ArtifactError
from lj_image.oci.blobs import BlobStore
from lj_image.oci.descriptor import Descriptor
from lj_image.oci.layout import Layout
from lj_image.oci.manifest import Index
from lj_image.oci.source import SourceImage, SourceLayer, with_manifest


def copy_into(layout: Layout, image: SourceImage, name: str | None = None) -> Descriptor:
    """Copy what the layout lacks, and then let a name stand for it; return the manifest's descriptor.

    Raises ArtifactError for a layer whose bytes are others than the manifest says, UsageError for an impossible name.
    """
    found = with_manifest(image)
    for layer in found.layers:
        copy_layer(layer, layout.blobs)
    layout.blobs.put(found.config)
    layout.blobs.put(found.manifest or b"")
    descriptor = described(found)
    if name is not None:
        layout.set_reference(name, descriptor)
    return descriptor


def copy_index_into(layout: Layout, images: Iterable[SourceImage], name: str) -> Descriptor:
    """Copy images of several platforms, and let one name stand for the index of them."""
    index = Index(tuple(copy_into(layout, image) for image in images))
    layout.blobs.put(index.to_bytes())
    layout.set_reference(name, index.descriptor())
    return index.descriptor()


def described(image: SourceImage) -> Descriptor:
    """Return the descriptor of an image's manifest for an index: with its platform, and without foreign annotations."""
    if image.descriptor is None:
        raise ArtifactError(f"{image.name} has no manifest")
    return replace(image.descriptor, platform=image.descriptor.platform or image.settings.platform, annotations={})


def copy_layer(layer: SourceLayer, blobs: BlobStore) -> None:
    """Bring a layer that a manifest describes into a store, by a link where it lies in one of ours.

    Raises ArtifactError where its bytes are others than the manifest says.
    """
    descriptor = layer.descriptor
    if descriptor is None or blobs.has(descriptor.digest):
        return
    if layer.file is not None:
        blobs.link(layer.file, descriptor.digest)
        return
    with layer.open() as stream:
        blobs.receive(stream, descriptor.digest, descriptor.size_bytes)
