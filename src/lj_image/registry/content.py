"""What a registry has under a name -> Content: its documents are read, its blobs opened no sooner than they are wanted.

Everything below a tag comes along: every platform of an index, and what it says about its images.
"""

from __future__ import annotations

from functools import partial
from types import TracebackType
from typing import Self

from lj_image.errors import ArtifactError
from lj_image.oci.content import Blob, Content
from lj_image.oci.descent import content_below
from lj_image.oci.descriptor import Descriptor
from lj_image.oci.reference import Reference
from lj_image.oci.source import Stream
from lj_image.oci.streams import BLOCK_BYTES
from lj_image.registry.client import FetchedManifest, Registry
from lj_image.registry.connection import CutOff
from lj_image.registry.faults import RegistryError


def content_at(registry: Registry, reference: Reference) -> Content:
    """Read what a tag or digest stands for, and every document below it.

    Raises ArtifactError where it is not there, is damaged, or the registry refuses or does not answer. The blobs need
    the registry to stay open.
    """
    repository = reference.repository
    root = _manifest(registry, repository, reference.wanted)
    read = {root.descriptor.digest: root.content}

    def document(item: Descriptor) -> bytes:
        if (known := read.get(item.digest)) is not None:
            return known
        return _manifest(registry, repository, str(item.digest)).content

    return content_below(str(reference), root.descriptor, document, partial(blob_at, registry, repository))


def blob_at(registry: Registry, repository: str, item: Descriptor) -> Blob:
    """Return a blob of a repository, which is asked for no sooner than it is opened; that raises ArtifactError."""
    return Blob(item, partial(_open_at, registry, repository, item), f"{registry.host}/{repository}")


def _manifest(registry: Registry, repository: str, wanted: str) -> FetchedManifest:
    try:
        return registry.manifest(repository, wanted)
    except RegistryError as error:
        raise unreadable(error) from None


def _open_at(registry: Registry, repository: str, item: Descriptor, offset: int) -> Stream:
    try:
        return SourceStream(registry.open_blob(repository, item, offset))
    except RegistryError as error:
        if not offset or error.status != 200:
            raise unreadable(error) from None
    # The whole blob in answer to a range: RFC 9110 §14.2 lets a server pass over it. What lies before is read past.
    stream = _open_at(registry, repository, item, 0)
    try:
        while offset and (block := stream.read(min(offset, BLOCK_BYTES))):
            offset -= len(block)
    except BaseException:
        stream.close()
        raise
    return stream


class SourceStream:
    """A blob's stream whose failures are those of a source: nobody who gets the blob is to blame for them."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes, none at the end; raises ArtifactError."""
        try:
            return self._stream.read(size)
        except RegistryError as error:
            raise unreadable(error) from None
        except CutOff:
            raise ArtifactError("the source was cut off") from None

    def close(self) -> None:
        """Let the connection go."""
        self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.close()


def unreadable(error: RegistryError) -> ArtifactError:
    """Return a source's failure: nobody who is to get its content is to blame for it."""
    return ArtifactError(f"the source cannot be read: {error.message}", hint=error.hint)
