"""From a manifest or an index down to all that it names: the documents in between, and the blobs at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from lj_image.errors import ArtifactError
from lj_image.oci.content import Blob, Content, Document
from lj_image.oci.descriptor import Descriptor
from lj_image.oci.digest import Digest
from lj_image.oci.manifest import LARGEST_BYTES, Index, Manifest
from lj_image.oci.media_types import INDEXES, MANIFESTS
from lj_image.oci.values import Value

_DEEPEST: Final = 8
"""Indexes in indexes: more is a knot, and nobody's image."""
_MOST_DOCUMENTS: Final = 1000
"""A release has a platform or two, and what is attested of them; an index of 4 MiB may name ten thousand manifests."""

ReadDocument = Callable[[Descriptor], bytes]
"""Returns the bytes of a manifest or index; raises ArtifactError where they are not there."""


def content_below(name: str, root: Descriptor, read: ReadDocument, blob: Callable[[Descriptor], Blob]) -> Content:
    """Read a document and every one below it, and return them with their blobs, none of which is read.

    Layers that have addresses of their own are left out, as registries never get them. Raises ArtifactError for a
    document that is missing, damaged, or of a kind that says not what belongs to it.
    """
    descent = _Descent(name, read)
    descent.take(root, 0)
    return Content(name, tuple(descent.documents.values()), tuple(map(blob, descent.blobs.values())))


class _Descent:
    def __init__(self, name: str, read: ReadDocument) -> None:
        self._name, self._read = name, read
        self.documents: dict[Digest, Document] = {}
        """Each after those that it names."""
        self.blobs: dict[Digest, Descriptor] = {}

    def take(self, item: Descriptor, depth: int) -> None:
        if item.digest in self.documents:
            return
        if depth > _DEEPEST or len(self.documents) >= _MOST_DOCUMENTS:
            raise ArtifactError(
                f"{self._name} names more documents than an image has", hint="name an image of it by its digest"
            )
        content = self._content(item)
        for child in self._children(item, content):
            self.take(child, depth + 1)
        self.documents[item.digest] = Document(item, content)

    def _content(self, item: Descriptor) -> bytes:
        if item.media_type not in INDEXES | MANIFESTS:
            raise ArtifactError(
                f"{self._name} names {item.digest} of the type {item.media_type!r}, which is no manifest known here",
                hint="copy an image of it alone, by the digest of its manifest",
            )
        if item.size_bytes > LARGEST_BYTES:
            raise self._damaged(f"the document {item.digest} would have {item.size_bytes} bytes")
        content = self._read(item)
        if (Digest.of(content), len(content)) != (item.digest, item.size_bytes):
            raise self._damaged(f"the document {item.digest} has other bytes than its digest and size say")
        said = Value.parse(content, f"the document {item.digest}")["mediaType"].text(item.media_type)
        if said != item.media_type:
            raise self._damaged(f"the document {item.digest} is called {item.media_type}, and calls itself {said}")
        return content

    def _children(self, item: Descriptor, content: bytes) -> Iterable[Descriptor]:
        if item.media_type in INDEXES:
            return Index.parse(content, f"the index {item.digest}").manifests
        manifest = Manifest.parse(content, f"the manifest {item.digest}")
        for part in (*manifest.layers, manifest.config):
            if not part.urls:
                self._add(part)
        return ()

    def _add(self, blob: Descriptor) -> None:
        known = self.blobs.setdefault(blob.digest, blob)
        if known.size_bytes != blob.size_bytes:
            raise self._damaged(f"the blob {blob.digest} has {known.size_bytes} bytes, and {blob.size_bytes} elsewhere")

    def _damaged(self, how: str) -> ArtifactError:
        return ArtifactError(f"{self._name} is damaged: {how}", hint="copy or build it again")
