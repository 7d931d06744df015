"""A root file system's tar becomes a layer of a base: compressed once, remembered by its diff id."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from filelock import FileLock

from lj_image.builders.oci.base_layer import BaseLayer
from lj_image.builders.oci.fresh_gzip import MAKER, gzip_members
from lj_image.errors import ArtifactError, BuildError
from lj_image.oci.blobs import BlobStore
from lj_image.oci.descriptor import Descriptor
from lj_image.oci.digest import Digest, HashingReader
from lj_image.oci.media_types import MediaType
from lj_image.oci.source import Stream
from lj_image.whole import write_whole

_MIB: Final = 1024 * 1024

Say = Callable[[str], None]


def compressed_layer(
    name: str, open_tar: Callable[[], Stream], diff_id: Digest, *, blobs: BlobStore, cache_dir: Path, say: Say
) -> BaseLayer:
    """Return the layer that a tar is; its blob is in the store afterwards.

    Compressing takes seconds, so it is done once for a diff id, by whoever comes first. Raises BuildError where the
    tar cannot be read, or is another one than its diff id says.
    """
    note = _note(diff_id, cache_dir)
    descriptor = _remembered(note, blobs)
    if descriptor is None:
        note.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(note.with_suffix(".lock")):
            descriptor = _remembered(note, blobs) or _compressed(name, open_tar, diff_id, blobs, say)
        with suppress(OSError):
            write_whole(note, json.dumps({"digest": descriptor.digest.hex}))
    return BaseLayer(diff_id, descriptor, partial(_copy, blobs, descriptor.digest))


def remembered_layer(diff_id: Digest, *, blobs: BlobStore, cache_dir: Path) -> Descriptor | None:
    """Return the blob that the tar of a diff id became, None where it was never compressed or is gone."""
    return _remembered(_note(diff_id, cache_dir), blobs)


def _note(diff_id: Digest, cache_dir: Path) -> Path:
    return cache_dir / "bases" / f"{diff_id.hex}-{MAKER}.json"


def _remembered(note: Path, blobs: BlobStore) -> Descriptor | None:
    """Return what is remembered, as long as the blob is still in the store; a damaged note is as good as none."""
    with suppress(OSError, ValueError, KeyError, TypeError, ArtifactError):
        digest = Digest.parse(f"sha256:{json.loads(note.read_text(encoding='utf-8'))['digest']}")
        if blobs.has(digest):
            return Descriptor(MediaType.OCI_LAYER_GZIP, digest, blobs.size_bytes(digest))
    return None


def _compressed(name: str, open_tar: Callable[[], Stream], diff_id: Digest, blobs: BlobStore, say: Say) -> Descriptor:
    say(f"compressing {name}, once only")
    try:
        with open_tar() as tar, blobs.writer() as writer:
            plain = HashingReader(tar)
            for member in gzip_members(plain):
                writer.write(member)
            if plain.digest != diff_id:
                raise BuildError(
                    f"{name} is damaged: its layer is {plain.digest}, and should be {diff_id}",
                    hint="save or copy it again",
                )
    except OSError as error:
        raise BuildError(f"{name} cannot be compressed: {error}", hint="make room, or name another base") from None
    return Descriptor(MediaType.OCI_LAYER_GZIP, writer.digest, writer.size_bytes)


def _copy(source: BlobStore, digest: Digest, target: BlobStore) -> None:
    if not target.has(digest):
        target.link(source.path(digest), digest)
