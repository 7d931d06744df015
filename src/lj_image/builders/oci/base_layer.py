"""What an image stands on, as the assembler sees it, wherever it came from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from lj_image.builders.oci.base_links import BaseTree
from lj_image.oci.blobs import BlobStore
from lj_image.oci.descriptor import Descriptor
from lj_image.oci.digest import Digest
from lj_image.oci.image_config import ImageConfig


@dataclass(frozen=True, slots=True)
class BaseLayer:
    """One layer of a base."""

    diff_id: Digest
    descriptor: Descriptor
    """Of the blob, compressed or not."""
    copy: Callable[[BlobStore], None] = field(compare=False, repr=False)
    """Puts the blob into a store unless it is there; reads from where the base is, which may be a registry."""


@dataclass(frozen=True, slots=True)
class OciBase:
    """An image to put layers on."""

    name: str
    """As the label org.opencontainers.image.base.name says it."""
    digest: str
    """Of its manifest, `sha256:…`; of a root file system, that of the configuration: an engine's image id."""
    config: ImageConfig
    layers: tuple[BaseLayer, ...]
    tree: BaseTree
