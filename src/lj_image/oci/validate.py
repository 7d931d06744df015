"""Whether an image is what its documents say, down to the last byte of each layer."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from lj_image.errors import ArtifactError
from lj_image.oci.descriptor import Descriptor
from lj_image.oci.digest import Digest, HashingReader
from lj_image.oci.image_config import ImageConfig
from lj_image.oci.manifest import Manifest
from lj_image.oci.media_types import CONFIGS, compression_of, is_docker
from lj_image.oci.source import SourceImage, SourceLayer
from lj_image.oci.streams import MAGIC_BYTES, HashingChunks, compression_of_start, decompressed


def validate(image: SourceImage) -> None:
    """Read an image whole; raises ArtifactError that names all that is wrong."""
    found = tuple(faults(image))
    if found:
        raise ArtifactError(f"{image.name} is not a whole image:\n" + "\n".join(f"  {fault}" for fault in found))


def faults(image: SourceImage) -> Iterator[str]:
    """Yield what is wrong with an image, in sentences; every layer is read once."""
    try:
        config = image.settings
        if image.manifest is not None:
            yield from _manifest_faults(image, Manifest.parse(image.manifest, f"the manifest of {image.name}"))
    except ArtifactError as error:
        yield error.message
        return
    yield from _config_faults(image, config)
    for number, layer in enumerate(image.layers):
        yield from (f"layers[{number}]: {fault}" for fault in _layer_faults(layer))


def _manifest_faults(image: SourceImage, manifest: Manifest) -> Iterator[str]:
    if image.descriptor is not None and image.manifest is not None:
        yield from _differences("the manifest", image.descriptor, Digest.of(image.manifest), len(image.manifest))
    yield from _differences("the configuration", manifest.config, image.image_id, len(image.config))
    if manifest.config.media_type not in CONFIGS:
        yield f"the configuration is of the type {manifest.config.media_type!r}, which is none of an image's"
    mixed = {is_docker(item.media_type) for item in (manifest.config, *manifest.layers)}
    if mixed != {is_docker(manifest.media_type)}:
        yield f"the manifest is {manifest.media_type}, and names blobs of the other kind"
    if manifest.layers != tuple(layer.descriptor for layer in image.layers):
        yield "the manifest names other layers"


def _config_faults(image: SourceImage, config: ImageConfig) -> Iterator[str]:
    if config.diff_ids != tuple(layer.diff_id for layer in image.layers):
        yield f"the configuration names {len(config.diff_ids)} layers, and {len(image.layers)} are there, or others"
    steps = sum(not step.empty_layer for step in config.history)
    if config.history and steps != len(image.layers):
        yield f"the history has {steps} steps that made a layer, for {len(image.layers)} layers"


def _layer_faults(layer: SourceLayer) -> Iterator[str]:
    try:
        with layer.open() as stream:
            reader = HashingReader(stream)
            with HashingChunks(decompressed(reader)) as chunks:
                for _ in chunks:
                    pass
                diff_id = Digest(chunks.hexdigest())
    except (ArtifactError, zlib.error) as error:
        yield f"cannot be read: {error}"
        return
    if diff_id != layer.diff_id:
        yield f"has the diff id {diff_id} instead of {layer.diff_id}"
    if layer.descriptor is not None:
        yield from _differences("the blob", layer.descriptor, reader.digest, reader.size_bytes)
        yield from _type_faults(layer, layer.descriptor)


def _type_faults(layer: SourceLayer, descriptor: Descriptor) -> Iterator[str]:
    said = compression_of(descriptor.media_type)
    with layer.open() as stream:
        found = compression_of_start(stream.read(MAGIC_BYTES))
    if said is None:
        yield f"is of the type {descriptor.media_type!r}, which is none of a layer's"
    elif said != found:
        yield f"is of the type {descriptor.media_type}, and its compression is {found}"


def _differences(name: str, expected: Descriptor, digest: Digest, size_bytes: int) -> Iterator[str]:
    if expected.digest != digest:
        yield f"{name} has the digest {digest} instead of {expected.digest}"
    if expected.size_bytes != size_bytes:
        yield f"{name} has {size_bytes} bytes instead of {expected.size_bytes}"
