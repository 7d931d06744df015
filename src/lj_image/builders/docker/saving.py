"""What an engine saves of an image -> its configuration, and its layers one by one, while the stream passes once.

An engine that keeps layers unpacked saves plain tars: those of `docker save` up to 24 lie at `<id>/layer.tar` in the
order of ids that say nothing, newer ones at `blobs/sha256/<diff id>`. One on containerd saves the blobs that it keeps.
Formats: https://github.com/moby/docker-image-spec/blob/main/v1.2.md#combined-image-json--filesystem-changeset-format
and https://github.com/opencontainers/image-spec/blob/main/image-layout.md
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from io import BytesIO
from pathlib import Path
from typing import Final

import requests
from docker import APIClient

from lj_image.builders.docker.engine import WIRE_ERRORS, host, refusal, translated
from lj_image.errors import ArtifactError, EngineError
from lj_image.oci.blobs import BlobStore
from lj_image.oci.descriptor import Platform
from lj_image.oci.digest import Digest
from lj_image.oci.saved import image_among
from lj_image.oci.source import SourceImage, SourceLayer, Stream
from lj_image.oci.streams import BLOCK_BYTES, ChunkReader, Readable, decompressed
from lj_image.oci.tars import Content, Member, NotATarError, walk

_CONNECT_S: Final = 30.0
_BLOBS: Final = "blobs/sha256/"
_LARGEST_DOCUMENT_BYTES: Final = 16 * 1024 * 1024
"""Of a configuration, or of a document beside the blobs."""
_BUILD_AGAIN: Final = "build the image again: lj-image build"


@contextmanager
def saved(api: APIClient, image_id: str) -> Iterator[Readable]:
    """Have the engine save an image; its tar can be read until the block ends, and then the engine is hung up on.

    Raises EngineError for an image that it does not have, and, from the reader too, where it goes away. An engine may
    be silent for minutes before the first byte, so silence alone is waited for.
    """
    with translated(f"saving {image_id}"):
        response = api.get(
            f"{api.base_url}/v{api.api_version}/images/{image_id}/get", stream=True, timeout=(_CONNECT_S, None)
        )
    try:
        if response.status_code == HTTPStatus.NOT_FOUND:
            raise EngineError(f"the engine does not have the image {image_id} any more", hint=_BUILD_AGAIN)
        if words := refusal(response):
            raise EngineError(f"the engine does not save {image_id}: {words}", hint="look into the engine's log")
        yield ChunkReader(_chunks(response, image_id))
    except NotATarError as error:
        raise _ended_early(image_id, str(error)) from None
    finally:
        response.close()


def _chunks(response: requests.Response, image_id: str) -> Iterator[bytes]:
    try:
        yield from response.iter_content(BLOCK_BYTES)
    except WIRE_ERRORS:
        raise EngineError(
            f"the engine at {host()} went away while it saved {image_id}",
            hint="see the engine's own log, then run the same command again: layers that were read are kept",
        ) from None


def _ended_early(image_id: str, how: str) -> EngineError:
    return EngineError(
        f"what the engine saves of {image_id} is not whole: {how}",
        hint="its disk may be full, since it writes the image there first: look into its log",
    )


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is looked for in the plain tars of an image."""

    image_id: Digest
    missing: frozenset[Digest]
    """Diff ids of the layers to be read."""
    starts: Callable[[], Collection[str]] = tuple
    """Asked where names say nothing: how the tars of other layers begin, see `start_of`; they are passed over then."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What was found."""

    config: bytes | None
    missing: frozenset[Digest]
    """What did not come by; it may be that it was taken for another layer with the same start."""
    passed: int
    """How many layers were passed over by their starts."""


Compress = Callable[[Iterable[bytes]], Digest]
"""Takes the tar of a layer, and returns its diff id."""


def take_layers(stream: Readable, wanted: Wanted, compress: Compress) -> Taken:
    """Hand each layer that is missing to `compress`, and return the configuration; no more is read than that takes.

    Raises NotATarError where the stream ends early, EngineError for a configuration that is not the image's.
    """
    missing, passed, config = set(wanted.missing), _Passed(wanted.starts), None
    for entry in walk(stream):
        if entry.path in (f"{wanted.image_id.hex}.json", f"{_BLOBS}{wanted.image_id.hex}"):
            config = _config(entry, wanted.image_id)
        elif (chunks := _layer(entry, missing, passed)) is not None:
            missing.discard(compress(chunks))
        if not missing and config is not None:
            break
    return Taken(config, frozenset(missing), passed.count)


def start_of(layer: SourceLayer) -> str:
    """Return the digest of how a layer's tar begins; raises ArtifactError, OSError or zlib.error."""
    with layer.open() as stream:
        return _fingerprint(ChunkReader(decompressed(stream)).read(BLOCK_BYTES))


class _Passed:
    """Recognises the layers that need not be read, each once."""

    def __init__(self, starts: Callable[[], Collection[str]]) -> None:
        self._starts = starts
        self._left: set[str] | None = None
        self.count = 0

    def recognises(self, start: bytes) -> bool:
        if self._left is None:
            self._left = set(self._starts())
        if (fingerprint := _fingerprint(start)) not in self._left:
            return False
        self._left.remove(fingerprint)
        self.count += 1
        return True


def _layer(entry: Member, missing: Collection[Digest], passed: _Passed) -> Iterator[bytes] | None:
    """Return the tar of a layer that is to be read; None for one that need not be, and for what is no layer."""
    if not entry.is_file:
        return None
    if (named := _digest_in(entry.path)) is not None:
        return _blocks(b"", entry.content) if named in missing else None
    if not entry.path.endswith("/layer.tar"):
        return None
    start = entry.content.read(BLOCK_BYTES)
    return None if passed.recognises(start) else _blocks(start, entry.content)


def _blocks(start: bytes, content: Content) -> Iterator[bytes]:
    if start:
        yield start
    while block := content.read(BLOCK_BYTES):
        yield block


def _fingerprint(start: bytes) -> str:
    return hashlib.sha256(start).hexdigest()


def _digest_in(path: str) -> Digest | None:
    try:
        return Digest(path.removeprefix(_BLOBS)) if path.startswith(_BLOBS) else None
    except ArtifactError:
        return None


def _config(entry: Member, image_id: Digest) -> bytes:
    content = _document(entry)
    if Digest.of(content) != image_id:
        raise EngineError(
            f"the engine saved another configuration than that of {image_id}: {Digest.of(content)}", hint=_BUILD_AGAIN
        )
    return content


def _document(entry: Member) -> bytes:
    if entry.content.left_bytes > _LARGEST_DOCUMENT_BYTES:
        raise EngineError(f"{entry.path} in what the engine saved is too large for a document", hint=_BUILD_AGAIN)
    return entry.content.read(entry.content.left_bytes)


def take_image(stream: Readable, blobs: BlobStore, image_id: str, platform: Platform) -> SourceImage:
    """Bring the blobs of an engine on containerd into a store, as they are, and return the image of a platform.

    What is there already passes by. Raises NotATarError where the stream ends early, ArtifactError for a blob of other
    bytes than its name says, UsageError where there is no such image, OSError where it cannot be written.
    """
    documents: dict[str, bytes] = {}
    for entry in walk(stream):
        if not entry.is_file:
            continue
        if (digest := _digest_in(entry.path)) is None:
            documents[entry.path] = _document(entry)
        else:
            blobs.receive(entry.content, digest, entry.content.left_bytes)
    return image_among(_TakenEntries(blobs, documents), Path(image_id), platform)


@dataclass(frozen=True, slots=True)
class _TakenEntries:
    """An archive whose blobs lie in a store by now."""

    blobs: BlobStore
    documents: Mapping[str, bytes]

    def size_bytes(self, name: str) -> int | None:
        if (digest := _digest_in(name)) is None:
            return len(self.documents[name]) if name in self.documents else None
        return self.blobs.size_bytes(digest) if self.blobs.has(digest) else None

    def open(self, name: str, offset: int = 0) -> Stream:
        if (digest := _digest_in(name)) is None:
            return BytesIO(self.documents[name][offset:])
        file = self.blobs.open(digest)
        file.seek(offset)
        return file
