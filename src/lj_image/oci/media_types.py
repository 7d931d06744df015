"""The media types of images, and what a type says of the bytes."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Literal

Compression = Literal["none", "gzip", "zstd"]


class MediaType(StrEnum):
    """OCI image spec, media-types.md, and what engines wrote before it (distribution, manifest v2 schema 2)."""

    # https://github.com/opencontainers/image-spec/blob/main/media-types.md#oci-image-media-types
    OCI_INDEX = "application/vnd.oci.image.index.v1+json"
    OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
    OCI_CONFIG = "application/vnd.oci.image.config.v1+json"
    OCI_EMPTY = "application/vnd.oci.empty.v1+json"
    OCI_LAYER = "application/vnd.oci.image.layer.v1.tar"
    OCI_LAYER_GZIP = "application/vnd.oci.image.layer.v1.tar+gzip"
    OCI_LAYER_ZSTD = "application/vnd.oci.image.layer.v1.tar+zstd"
    # …#non-distributable-layers: deprecated, but some bases still have them.
    OCI_FOREIGN = "application/vnd.oci.image.layer.nondistributable.v1.tar"
    OCI_FOREIGN_GZIP = "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip"
    OCI_FOREIGN_ZSTD = "application/vnd.oci.image.layer.nondistributable.v1.tar+zstd"
    # https://distribution.github.io/distribution/spec/manifest-v2-2/#media-types
    DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
    DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
    DOCKER_CONFIG = "application/vnd.docker.container.image.v1+json"
    DOCKER_LAYER = "application/vnd.docker.image.rootfs.diff.tar"
    DOCKER_LAYER_GZIP = "application/vnd.docker.image.rootfs.diff.tar.gzip"
    DOCKER_LAYER_ZSTD = "application/vnd.docker.image.rootfs.diff.tar.zstd"
    DOCKER_FOREIGN_GZIP = "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"


INDEXES: Final[frozenset[str]] = frozenset({MediaType.OCI_INDEX, MediaType.DOCKER_LIST})
MANIFESTS: Final[frozenset[str]] = frozenset({MediaType.OCI_MANIFEST, MediaType.DOCKER_MANIFEST})
CONFIGS: Final[frozenset[str]] = frozenset({MediaType.OCI_CONFIG, MediaType.DOCKER_CONFIG})
LAYERS: Final[Mapping[str, Compression]] = {
    MediaType.OCI_LAYER: "none",
    MediaType.OCI_LAYER_GZIP: "gzip",
    MediaType.OCI_LAYER_ZSTD: "zstd",
    MediaType.OCI_FOREIGN: "none",
    MediaType.OCI_FOREIGN_GZIP: "gzip",
    MediaType.OCI_FOREIGN_ZSTD: "zstd",
    MediaType.DOCKER_LAYER: "none",
    MediaType.DOCKER_LAYER_GZIP: "gzip",
    MediaType.DOCKER_LAYER_ZSTD: "zstd",
    MediaType.DOCKER_FOREIGN_GZIP: "gzip",
}
"""A layer's type -> how its tar is compressed."""
_LAYER_OF: Final[Mapping[tuple[str, Compression], MediaType]] = {
    ("oci", "none"): MediaType.OCI_LAYER,
    ("oci", "gzip"): MediaType.OCI_LAYER_GZIP,
    ("oci", "zstd"): MediaType.OCI_LAYER_ZSTD,
    ("docker", "none"): MediaType.DOCKER_LAYER,
    ("docker", "gzip"): MediaType.DOCKER_LAYER_GZIP,
    ("docker", "zstd"): MediaType.DOCKER_LAYER_ZSTD,
}


def compression_of(media_type: str) -> Compression | None:
    """Return how a layer of this type is compressed; None for a type that is no layer's."""
    return LAYERS.get(media_type)


def layer_type(compression: Compression, *, docker: bool = False) -> MediaType:
    """Return the type of a layer with this compression, in an OCI manifest or in one of docker's."""
    return _LAYER_OF["docker" if docker else "oci", compression]


def is_docker(media_type: str) -> bool:
    """Say whether a type is one of docker's own, so that a manifest of it keeps to those."""
    return media_type.startswith("application/vnd.docker.")
