"""What is said about content goes where it is taken, before any tag moves: who checks signatures finds them at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from lj_image.oci.content import Content
from lj_image.registry.faults import RegistryError
from lj_image.registry.publishing.documents import OneReader
from lj_image.registry.publishing.fitting import Fitted
from lj_image.registry.referrers import put_referrer
from lj_image.registry.transfer.delivery import Destination
from lj_image.registry.uploading.upload import bring_blob

_REFUSING: Final = frozenset({400, 403, 404, 405, 415})
"""How registries refuse a manifest that is no image's."""


def put_referrers(destination: Destination, fitted: Fitted, say: Callable[[str], None]) -> Fitted:
    """Store every referrer that a place lacks; one that it refuses is left out, and told in a note.

    Raises RegistryError for any other failure.
    """
    left = []
    for referrer in fitted.content.referrers:
        try:
            _put(destination, referrer)
        except RegistryError as error:
            if error.status not in _REFUSING:
                raise
            say(f"it refuses the referrer {referrer.root.descriptor.digest}: published without it")
            left.append(f"without the referrer {referrer.root.descriptor.digest}, since it is refused: {error.message}")
    return replace(fitted, notes=(*fitted.notes, *left)) if left else fitted


def _put(destination: Destination, referrer: Content) -> None:
    registry, repository = destination.registry, destination.repository
    if registry.head(repository, str(referrer.root.descriptor.digest)) is not None:
        return
    for blob in referrer.blobs:
        bring_blob(registry, repository, OneReader(blob), origin=blob.origin)
    for document in referrer.documents[:-1]:
        item = document.descriptor
        registry.put_manifest(repository, str(item.digest), document.content, item.media_type)
    put_referrer(registry, repository, referrer)
