"""Content without some of it, and content whose documents are of another kind; layers stay what they are.

Attestations: https://github.com/moby/buildkit/blob/master/docs/attestations/attestation-storage.md
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final, Literal

from lj_image.errors import ArtifactError
from lj_image.oci.content import Blob, Content, Document
from lj_image.oci.descriptor import Descriptor
from lj_image.oci.digest import Digest
from lj_image.oci.manifest import Index, Manifest
from lj_image.oci.media_types import INDEXES, MediaType, compression_of, is_docker, layer_type

REFERENCE_TYPE: Final = "vnd.docker.reference.type"
"""The annotation by which an index says that an entry is about another one."""
Kind = Literal["oci", "docker"]


def is_attestation(item: Descriptor) -> bool:
    """Say whether an entry of an index is no image, but says something about one."""
    unknown = item.platform is not None and (item.platform.os, item.platform.architecture) == ("unknown", "unknown")
    return REFERENCE_TYPE in item.annotations or unknown


def without_attestations(content: Content) -> Content:
    """Return content without what is attested of its images, itself where there is nothing.

    An index that is left with one image becomes that image: the digest is then the one that the image has wherever
    nothing was attested of it.
    """
    root = content.root
    if root.descriptor.media_type not in INDEXES:
        return content
    index = Index.parse(root.content, f"the index of {content.name}")
    kept = tuple(item for item in index.manifests if not is_attestation(item))
    if len(kept) == len(index.manifests):
        return content
    if not kept:
        raise ArtifactError(f"{content.name} has attestations, and no image", hint="build the image again")
    if len(kept) == 1:
        return _below(content, _document(content, kept[0].digest))
    left = replace(index, manifests=kept)
    return _below(content, Document(left.descriptor(), left.to_bytes()))


def of_kind(content: Content, kind: Kind) -> Content:
    """Return content whose documents are of OCI's media types, or of docker's; itself where they are.

    Raises ArtifactError for a layer that has no type of that kind.
    """
    if all(is_docker(document.descriptor.media_type) == (kind == "docker") for document in content.documents):
        return content
    converted: dict[Digest, Document] = {}
    for document in content.documents:
        converted[document.descriptor.digest] = _converted(document, kind, converted)
    return replace(content, documents=tuple(converted.values()))


def _converted(document: Document, kind: Kind, done: dict[Digest, Document]) -> Document:
    is_to_docker = kind == "docker"
    if document.descriptor.media_type in INDEXES:
        index = Index.parse(document.content)
        children = tuple(
            replace(item, media_type=new.media_type, digest=new.digest, size_bytes=new.size_bytes)
            for item in index.manifests
            for new in [done[item.digest].descriptor]
        )
        media_type = MediaType.DOCKER_LIST if is_to_docker else MediaType.OCI_INDEX
        made: Index | Manifest = replace(index, manifests=children, media_type=media_type)
    else:
        manifest = Manifest.parse(document.content)
        made = replace(
            manifest,
            config=replace(
                manifest.config, media_type=MediaType.DOCKER_CONFIG if is_to_docker else MediaType.OCI_CONFIG
            ),
            layers=tuple(_layer(item, is_to_docker=is_to_docker) for item in manifest.layers),
            media_type=MediaType.DOCKER_MANIFEST if is_to_docker else MediaType.OCI_MANIFEST,
        )
    described = made.descriptor(document.descriptor.platform)
    return Document(replace(described, annotations=document.descriptor.annotations), made.to_bytes())


def _layer(item: Descriptor, *, is_to_docker: bool) -> Descriptor:
    compression = compression_of(item.media_type)
    if compression is None or (is_to_docker and compression == "zstd"):
        kind = "docker's" if is_to_docker else "OCI's"
        raise ArtifactError(
            f"the layer {item.digest} of the type {item.media_type!r} has no type of {kind}",
            hint="build with gzip: lj-image build --compression gzip",
        )
    return replace(item, media_type=layer_type(compression, docker=is_to_docker))


def _below(content: Content, root: Document) -> Content:
    """Return what a document of content needs, the document last."""
    known = {document.descriptor.digest: document for document in content.documents}
    needed = {item.digest for item in _named(root, known.get)} | {root.descriptor.digest}
    documents = (*(item for digest, item in known.items() if digest in needed and item != root), root)
    blobs: tuple[Blob, ...] = tuple(blob for blob in content.blobs if blob.descriptor.digest in needed)
    return replace(content, documents=documents, blobs=blobs)


def _named(document: Document, find: Callable[[Digest], Document | None]) -> Iterable[Descriptor]:
    if document.descriptor.media_type not in INDEXES:
        manifest = Manifest.parse(document.content)
        yield from (manifest.config, *manifest.layers)
        return
    for item in Index.parse(document.content).manifests:
        yield item
        if (child := find(item.digest)) is not None:
            yield from _named(child, find)


def _document(content: Content, digest: Digest) -> Document:
    found = next((item for item in content.documents if item.descriptor.digest == digest), None)
    if found is None:
        raise ArtifactError(f"{content.name} lacks the manifest {digest}", hint="copy or build the image again")
    return found
