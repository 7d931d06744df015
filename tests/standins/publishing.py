"""One image to one place, as most tests want it: what fails is raised."""

from __future__ import annotations

from collections.abc import Iterable

from lj_image.oci.content import Content, content_of, content_of_images
from lj_image.oci.digest import Digest
from lj_image.oci.reference import Reference
from lj_image.oci.source import SourceImage
from lj_image.registry.client import Registry
from lj_image.registry.publishing.place import Place, Placed
from lj_image.registry.publishing.publish import publish_content
from lj_image.registry.transfer.delivery import Destination


def publish_at(registry: Registry, reference: Reference, content: Content) -> Placed:
    """Publish content under a tag; raises what the place fails with."""
    place = Place(Destination("here", registry, reference.repository), (reference.wanted,))
    (placed,) = publish_content(content, [place], force_tag=True)
    if placed.error is not None:
        raise placed.error
    return placed


def push_image(registry: Registry, reference: Reference, image: SourceImage) -> Digest:
    """Publish an image, and return the digest that the tag holds."""
    digest = publish_at(registry, reference, content_of(image)).digest
    assert digest is not None
    return digest


def push_index(registry: Registry, reference: Reference, images: Iterable[SourceImage]) -> Digest:
    """Publish images of several platforms, and return the digest of their index."""
    digest = publish_at(registry, reference, content_of_images(images, str(reference))).digest
    assert digest is not None
    return digest
