"""An image of a registry -> SourceImage: its documents are read, its layers opened no sooner than they are wanted."""

from __future__ import annotations

from functools import partial

from lj_image.errors import ArtifactError, UsageError
from lj_image.oci.descriptor import Descriptor, Platform
from lj_image.oci.digest import Digest
from lj_image.oci.image_config import ImageConfig
from lj_image.oci.manifest import Index, Manifest
from lj_image.oci.media_types import INDEXES, compression_of
from lj_image.oci.reference import Reference
from lj_image.oci.source import SourceImage, SourceLayer, paired
from lj_image.registry.client import FetchedManifest, Registry
from lj_image.registry.faults import RegistryError

_DEPTH = 3
"""Indexes in indexes: more is a knot."""


def read_image(registry: Registry, reference: Reference, platform: Platform) -> SourceImage:
    """Read the documents of an image; of an index, those of the platform's.

    Raises UsageError where there is none for the platform, ArtifactError where it is not there, is damaged, or the
    registry refuses or does not answer. The layers need the registry to stay open.
    """
    try:
        found = _of_platform(registry, reference, platform)
        manifest = Manifest.parse(found.content, f"the manifest of {reference}")
        config = _small(registry, reference.repository, manifest.config)
    except RegistryError as error:
        raise ArtifactError(error.message, hint=error.hint) from None
    diff_ids = ImageConfig.parse(config, f"the configuration of {reference}").diff_ids
    pairs = paired(manifest, diff_ids, str(reference))
    layers = tuple(_layer(registry, reference, descriptor, diff_id) for descriptor, diff_id in pairs)
    return SourceImage(str(reference), config, layers, found.content, found.descriptor)


def _of_platform(registry: Registry, reference: Reference, platform: Platform) -> FetchedManifest:
    found = registry.manifest(reference.repository, reference.wanted)
    for _ in range(_DEPTH):
        if found.descriptor.media_type not in INDEXES:
            return found
        index = Index.parse(found.content, f"the index of {reference}")
        chosen = _chosen(index, reference, platform)
        found = registry.manifest(reference.repository, str(chosen.digest))
    raise ArtifactError(f"{reference} is an index of indexes of indexes", hint="name an image by its digest")


def _chosen(index: Index, reference: Reference, platform: Platform) -> Descriptor:
    """Return the first entry for the platform, as engines do, else the first index in the index."""
    for item in index.manifests:
        if item.platform is not None and item.platform.serves(platform):
            return item
    inner = next((item for item in index.manifests if item.media_type in INDEXES), None)
    if inner is None:
        known = ", ".join(str(item.platform) for item in index.manifests if item.platform) or "no platform"
        raise UsageError(f"{reference} has no image for {platform}; it has {known}", hint="name one with --platform")
    return inner


def _small(registry: Registry, repository: str, descriptor: Descriptor) -> bytes:
    with registry.open_blob(repository, descriptor) as stream:
        return stream.read(descriptor.size_bytes + 1)


def _layer(registry: Registry, reference: Reference, descriptor: Descriptor, diff_id: Digest) -> SourceLayer:
    return SourceLayer(
        diff_id,
        compression_of(descriptor.media_type) or "none",
        descriptor.size_bytes,
        partial(registry.open_blob, reference.repository, descriptor),
        descriptor,
        origin=reference.name,
    )
