"""Manifests and indexes of one place: by digest, each after those that it names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from lj_image.errors import ArtifactError
from lj_image.oci.content import Blob, Content, Document
from lj_image.oci.descriptor import Descriptor
from lj_image.oci.pruning import without_attestations
from lj_image.registry.faults import RegistryError
from lj_image.registry.publishing.fitting import Fitted, left_out
from lj_image.registry.transfer.delivery import Destination
from lj_image.registry.uploading.body import pieces_of
from lj_image.registry.uploading.upload import bring_blob

_LAGGING: Final = frozenset({"MANIFEST_BLOB_UNKNOWN", "BLOB_UNKNOWN"})
_ATTEMPTS: Final = 4
_REFUSING: Final = frozenset({400, 403, 415})
"""How registries refuse a kind of manifest that they do not know."""


@dataclass(frozen=True, slots=True)
class OneReader:
    """A blob that is read for one upload alone."""

    blob: Blob

    @property
    def descriptor(self) -> Descriptor:
        """Digest and size in bytes of the whole."""
        return self.blob.descriptor

    def pieces(self, start: int, end: int) -> Iterable[bytes]:
        """Give the bytes of a part; raises ArtifactError where there are fewer."""
        with self.blob.open_at(start) as stream:
            yield from pieces_of(stream, end - start, f"blob {self.blob.descriptor.digest}")


def put_documents(destination: Destination, fitted: Fitted, say: Callable[[str], None]) -> Fitted:
    """Store all documents by digest, and return what was stored: without attestations where only those are refused.

    Raises RegistryError where the registry refuses.
    """
    try:
        _put_all(destination, fitted.content, say)
    except RegistryError as error:
        left = _without_attestations(fitted.content)
        if error.status not in _REFUSING or left is None:
            raise
        note = left_out(fitted.content, left, f"{destination.registry.host} refuses them ({error.message})")
        say("it refuses the attestations: published without them")
        _put_all(destination, left, say)
        return Fitted(left, (*fitted.notes, note))
    return fitted


def _put_all(destination: Destination, content: Content, say: Callable[[str], None]) -> None:
    for document in content.documents:
        _put(destination, document, content, say)


def _put(destination: Destination, document: Document, content: Content, say: Callable[[str], None]) -> None:
    """Store a document; what a registry has just taken it may not know yet."""
    registry, repository, item = destination.registry, destination.repository, document.descriptor
    for attempt in range(_ATTEMPTS):
        try:
            registry.put_manifest(repository, str(item.digest), document.content, item.media_type)
        except RegistryError as error:
            is_lagging = error.code in _LAGGING or (error.status == 404 and error.code != "NAME_UNKNOWN")
            if not is_lagging or attempt + 1 == _ATTEMPTS:
                raise _refused(error, destination, item) from None
            say("it does not know yet what it was sent: asking for each blob again")
            registry.connection.wait_before(attempt)
            _bring_missing(destination, content)
        else:
            return


def _bring_missing(destination: Destination, content: Content) -> None:
    for blob in content.blobs:
        bring_blob(destination.registry, destination.repository, OneReader(blob), origin=blob.origin)


def _without_attestations(content: Content) -> Content | None:
    try:
        left = without_attestations(content)
    except ArtifactError:
        return None
    return None if left is content else left


def _refused(error: RegistryError, destination: Destination, item: Descriptor) -> RegistryError:
    if error.status not in (400, 413, 415):
        return error
    return RegistryError(
        f"{destination.registry.host} refuses the manifest {item.digest} of the type {item.media_type} "
        f"and {item.size_bytes:,} bytes: {error.message}",
        hint="a profile in image.yaml says which types a kind of registry takes (endpoints: profile)",
        status=error.status,
        code=error.code,
    )
