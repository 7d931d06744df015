"""A finished image -> one tar, block by block: an OCI archive, what `docker load` reads, or both at once.

Formats: https://github.com/opencontainers/image-spec/blob/main/image-layout.md and
https://github.com/moby/docker-image-spec/blob/main/v1.2.md#combined-image-json--filesystem-changeset-format
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Final, Literal

from lj_image.errors import ArtifactError
from lj_image.oci.copying import described
from lj_image.oci.descriptor import Descriptor
from lj_image.oci.digest import Digest, HashingReader
from lj_image.oci.layout import INDEX_FILE, LAYOUT_FILE, LAYOUT_MARK, REFERENCE
from lj_image.oci.manifest import Index
from lj_image.oci.reference import Reference
from lj_image.oci.saved import CONTAINERD_NAME, DOCKER_FILE
from lj_image.oci.source import SourceImage, Stream, with_manifest
from lj_image.oci.streams import BLOCK_BYTES
from lj_image.oci.values import canonical

Form = Literal["oci", "docker", "both"]
RECORD_BYTES: Final = 512
END: Final = bytes(2 * RECORD_BYTES)
"""Of a tar: POSIX.1-2017, pax, "ustar Interchange Format"."""


@dataclass(frozen=True, slots=True)
class _Blob:
    digest: Digest
    size_bytes: int
    open: Callable[[], Stream]


def archive(
    image: SourceImage,
    references: Sequence[Reference] = (),
    form: Form = "both",
    *,
    left_out: Collection[int] = (),
) -> Iterator[bytes]:
    """Yield the tar of an image under these names.

    `left_out` has the places of layers that an engine has already; one without containerd's store asks for no more.
    The same image and names give the same bytes. Engines before 23 read no layers in zstd. Raises ArtifactError, in
    the midst of it, for a layer whose bytes are others than the manifest says.
    """
    found = with_manifest(image)
    tagged = tuple(reference.tagged() for reference in references)
    if form != "docker":
        yield from _layout_files(_named(described(found), tagged))
    if form != "oci":
        yield from _file(DOCKER_FILE, canonical([_docker_manifest(found, tagged)]))
    yield from _blobs(_blobs_of(found, with_manifest_blob=form != "docker", left_out=left_out))
    yield END


def index_archive(images: Iterable[SourceImage], references: Sequence[Reference] = ()) -> Iterator[bytes]:
    """Yield the OCI archive of images of several platforms, which the names stand for together."""
    found = tuple(map(with_manifest, images))
    index = Index(tuple(map(described, found)))
    content = index.to_bytes()
    yield from _layout_files(_named(index.descriptor(), tuple(reference.tagged() for reference in references)))
    every = [_small(content), *(blob for image in found for blob in _blobs_of(image, with_manifest_blob=True))]
    yield from _blobs(every)
    yield END


def _layout_files(index: Index) -> Iterator[bytes]:
    yield from _file(LAYOUT_FILE, LAYOUT_MARK)
    yield from _file(INDEX_FILE, index.to_bytes())


def _named(target: Descriptor, references: Sequence[Reference]) -> Index:
    """Return an index with an entry for each name, as engines on containerd and skopeo look for them."""
    entries = (
        replace(target, annotations={CONTAINERD_NAME: str(item), REFERENCE: item.tag or str(item.digest)})
        for item in references
    )
    return Index(tuple(entries) or (target,))


def _docker_manifest(image: SourceImage, references: Sequence[Reference]) -> dict[str, object]:
    return {
        "Config": _place(image.image_id),
        "RepoTags": [item.familiar for item in references if item.digest is None],
        "Layers": [_place(layer.descriptor.digest) for layer in image.layers if layer.descriptor],
    }


def _place(digest: Digest) -> str:
    return f"blobs/sha256/{digest.hex}"


def _blobs_of(image: SourceImage, *, with_manifest_blob: bool, left_out: Collection[int] = ()) -> list[_Blob]:
    layers = (
        _Blob(layer.descriptor.digest, layer.descriptor.size_bytes, layer.open)
        for at, layer in enumerate(image.layers)
        if layer.descriptor and at not in left_out
    )
    manifest = [_small(image.manifest or b"")] if with_manifest_blob else []
    return [*manifest, _small(image.config), *layers]


def _small(content: bytes) -> _Blob:
    return _Blob(Digest.of(content), len(content), lambda: BytesIO(content))


def _blobs(every: Iterable[_Blob]) -> Iterator[bytes]:
    """Yield the folders, and each blob once."""
    yield header("blobs", 0, tarfile.DIRTYPE)
    yield header("blobs/sha256", 0, tarfile.DIRTYPE)
    for blob in {blob.digest: blob for blob in every}.values():
        yield header(_place(blob.digest), blob.size_bytes)
        with blob.open() as stream:
            yield from _checked(stream, blob)
        yield bytes(-blob.size_bytes % RECORD_BYTES)


def _checked(stream: Stream, blob: _Blob) -> Iterator[bytes]:
    reader = HashingReader(stream)
    while block := reader.read(BLOCK_BYTES):
        if reader.size_bytes <= blob.size_bytes:
            yield block
    if (reader.digest, reader.size_bytes) != (blob.digest, blob.size_bytes):
        raise ArtifactError(
            f"the blob {blob.digest} of {blob.size_bytes} bytes is {reader.digest} of {reader.size_bytes} bytes",
            hint="the place that it comes from is damaged: write it anew",
        )


def _file(name: str, content: bytes) -> Iterator[bytes]:
    yield header(name, len(content)) + content + bytes(-len(content) % RECORD_BYTES)


def header(name: str, size_bytes: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    """Return a header without anything of the machine: owner 0:0, no time."""
    member = tarfile.TarInfo(name)
    member.type, member.size = kind, size_bytes
    member.mode = 0o755 if kind == tarfile.DIRTYPE else 0o644
    return member.tobuf(tarfile.GNU_FORMAT)
