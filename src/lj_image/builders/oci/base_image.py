"""An image in files or in a registry becomes a base: its documents are read, its layers stay where they are."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from lj_image.builders.oci.base_layer import BaseLayer, OciBase
from lj_image.builders.oci.base_links import USR_MERGE, BaseTree, TreeMemory, base_tree
from lj_image.builders.oci.base_rootfs import compressed_layer
from lj_image.builders.oci.entries import Readable
from lj_image.errors import ArtifactError, BuildError
from lj_image.oci.blobs import BlobStore
from lj_image.oci.copying import copy_layer
from lj_image.oci.source import SourceImage, SourceLayer, with_manifest
from lj_image.oci.streams import ChunkReader, decompressed
from lj_image.oci.tars import NotATarError

Say = Callable[[str], None]


def image_base(image: SourceImage, *, blobs: BlobStore, cache_dir: Path, say: Say) -> OciBase:
    """Return the base that an image is; raises BuildError or ArtifactError for a damaged one.

    A root file system, and what old engines save, has no manifest and plain layers: those are compressed, once. Any
    other layer stays as its manifest says, since that is how registries know it. The tree of one in a registry is not
    read: gigabytes would have to be pulled to find a few links that every distribution has.
    """
    digest = image.descriptor.digest if image.descriptor else image.image_id
    tree = _tree(image, cache_dir)
    return OciBase(image.name, str(digest), image.settings, _layers(image, blobs, cache_dir, say), tree)


def _layers(image: SourceImage, blobs: BlobStore, cache_dir: Path, say: Say) -> tuple[BaseLayer, ...]:
    if image.manifest is None and all(layer.compression == "none" for layer in image.layers):
        return tuple(
            compressed_layer(image.name, layer.open, layer.diff_id, blobs=blobs, cache_dir=cache_dir, say=say)
            for layer in image.layers
        )
    return tuple(_kept(layer, image.name) for layer in with_manifest(image).layers)


def _tree(image: SourceImage, cache_dir: Path) -> BaseTree:
    """Return what is known of the folders of an image, from memory where its layers were read before."""
    memory, diff_ids = TreeMemory(cache_dir), tuple(str(layer.diff_id) for layer in image.layers)
    if (found := memory.read(diff_ids)) is not None:
        return found
    if any(layer.origin for layer in image.layers):
        return USR_MERGE
    try:
        found = base_tree(_tars(image.layers))
    except (OSError, NotATarError, zlib.error) as error:
        raise BuildError(
            f"{image.name} is damaged: a layer cannot be read ({error})", hint="save or copy it again"
        ) from None
    memory.write(diff_ids, found)
    return found


def _kept(layer: SourceLayer, name: str) -> BaseLayer:
    assert layer.descriptor is not None, "with_manifest describes every layer"
    return BaseLayer(layer.diff_id, layer.descriptor, partial(_copy, layer, name))


def _copy(layer: SourceLayer, name: str, target: BlobStore) -> None:
    try:
        copy_layer(layer, target)
    except ArtifactError as error:
        raise ArtifactError(f"the base {name}: {error.message}", hint=error.hint, location=error.location) from None


def _tars(layers: Iterable[SourceLayer]) -> Iterator[Readable]:
    for layer in layers:
        with layer.open() as blob:
            yield ChunkReader(decompressed(blob))
