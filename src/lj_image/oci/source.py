"""An image wherever it lies: its documents as they were read, and its layers to be opened when they are wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from lj_image.errors import ArtifactError
from lj_image.oci.blobs import BlobStore
from lj_image.oci.descriptor import Descriptor, descriptor_of
from lj_image.oci.digest import Digest, digest_of_stream
from lj_image.oci.image_config import ImageConfig
from lj_image.oci.manifest import Manifest
from lj_image.oci.media_types import Compression, MediaType, compression_of, layer_type


class Stream(Protocol):
    """A blob that is read forward, once, and then closed."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes, none at the end."""

    def close(self) -> None:
        """Let it go."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None, /
    ) -> object: ...


@dataclass(frozen=True, slots=True)
class SourceLayer:
    """A layer where it lies, which nobody has read yet."""

    diff_id: Digest
    """Of its tar, uncompressed."""
    compression: Compression
    size_bytes: int
    """As it lies there."""
    open: Callable[[], Stream] = field(repr=False, compare=False)
    """Opens it as it lies there, anew each time."""
    descriptor: Descriptor | None = None
    """What the manifest says of it; None where there is no manifest, but a diff id alone."""
    origin: str = ""
    """`host/repository` of the registry that has it; empty elsewhere."""
    file: Path | None = None
    """Where it lies in a store of ours, under its digest, so that a hard link is as good as a copy."""
    open_at: Callable[[int], Stream] | None = field(default=None, repr=False, compare=False)
    """Opens it at an offset, where that can be done without reading what lies before."""


@dataclass(frozen=True, slots=True)
class SourceImage:
    """An image where it lies."""

    name: str
    """A path or a reference, for messages."""
    config: bytes
    layers: tuple[SourceLayer, ...]
    """The lowest first."""
    manifest: bytes | None = None
    """As it was read; None where there is none, as in what old engines save."""
    descriptor: Descriptor | None = None
    """Of the manifest."""

    @property
    def image_id(self) -> Digest:
        """The configuration's digest, which engines show."""
        return Digest.of(self.config)

    @property
    def settings(self) -> ImageConfig:
        """The configuration, read; raises ArtifactError."""
        return ImageConfig.parse(self.config, f"the configuration of {self.name}")


def layer_in(blobs: BlobStore, descriptor: Descriptor, diff_id: Digest) -> SourceLayer:
    """Return a layer that lies among blobs, or will."""
    compression = compression_of(descriptor.media_type) or "none"
    return SourceLayer(
        diff_id,
        compression,
        descriptor.size_bytes,
        lambda: blobs.open(descriptor.digest),
        descriptor,
        file=blobs.path(descriptor.digest),
    )


def image_in(blobs: BlobStore, descriptor: Descriptor, name: str) -> SourceImage:
    """Return the image of a manifest among blobs; raises ArtifactError where a document is missing or damaged."""
    content = blobs.read(descriptor.digest)
    manifest = Manifest.parse(content, f"the manifest of {name}")
    config = blobs.read(manifest.config.digest)
    diff_ids = ImageConfig.parse(config, f"the configuration of {name}").diff_ids
    layers = tuple(layer_in(blobs, *pair) for pair in paired(manifest, diff_ids, name))
    return SourceImage(name, config, layers, content, descriptor)


def paired(manifest: Manifest, diff_ids: tuple[Digest, ...], name: str) -> tuple[tuple[Descriptor, Digest], ...]:
    """Return each layer with its diff id; raises ArtifactError where there are not as many."""
    if len(manifest.layers) != len(diff_ids):
        raise ArtifactError(
            f"{name} has {len(manifest.layers)} layers, and its configuration names {len(diff_ids)}",
            hint="build or copy the image again",
        )
    return tuple(zip(manifest.layers, diff_ids, strict=True))


def image_of(
    name: str, config: ImageConfig, layers: Iterable[SourceLayer], annotations: Mapping[str, str] | None = None
) -> SourceImage:
    """Return an image with an OCI manifest of its own, made from a configuration and layers.

    A layer that lies compressed without a descriptor is read once, for its digest.
    """
    described = tuple(map(_described, layers))
    content = config.to_bytes()
    manifest = Manifest(
        config=descriptor_of(content, MediaType.OCI_CONFIG),
        layers=tuple(layer.descriptor for layer in described if layer.descriptor is not None),
        annotations=annotations or {},
    )
    return SourceImage(name, content, described, manifest.to_bytes(), manifest.descriptor(config.platform))


def _described(layer: SourceLayer) -> SourceLayer:
    if layer.descriptor is not None:
        return layer
    digest = layer.diff_id
    if layer.compression != "none":
        with layer.open() as stream:
            digest, _ = digest_of_stream(stream)
    descriptor = Descriptor(layer_type(layer.compression), digest, layer.size_bytes)
    return replace(layer, descriptor=descriptor)


def with_manifest(image: SourceImage) -> SourceImage:
    """Return the image itself, or with a manifest of ours where it has none; its configuration stays byte for byte."""
    if image.manifest is not None:
        return image
    made = image_of(image.name, image.settings, image.layers)
    manifest = Manifest.parse(made.manifest or b"")
    # The configuration's bytes are the image id: they are described as they are, canonical or not.
    kept = Manifest(descriptor_of(image.config, MediaType.OCI_CONFIG), manifest.layers)
    descriptor = kept.descriptor(image.settings.platform)
    return SourceImage(image.name, image.config, made.layers, kept.to_bytes(), descriptor)
