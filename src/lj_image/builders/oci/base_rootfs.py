"""A root file system's tar becomes the one layer of a base: compressed once, remembered by its diff id."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from filelock import FileLock

from lj_image.builders.oci.base_layer import BaseLayer
from lj_image.builders.oci.base_links import BaseTree, TreeMemory, base_tree
from lj_image.builders.oci.fresh_gzip import MAKER, gzip_members
from lj_image.errors import BuildError, Location
from lj_image.oci.blobs import BlobStore
from lj_image.oci.descriptor import Descriptor
from lj_image.oci.digest import Digest
from lj_image.oci.media_types import MediaType
from lj_image.oci.tars import NotATarError
from lj_image.whole import write_whole

_MIB: Final = 1024 * 1024


def rootfs_layer(
    rootfs: Path, diff_id: Digest, *, blobs: BlobStore, cache_dir: Path, say: Callable[[str], None]
) -> BaseLayer:
    """Return the layer that a tar is; its blob is in the store afterwards.

    Compressing takes seconds, so it is done once for a diff id, by whoever comes first. Raises BuildError.
    """
    note = cache_dir / "bases" / f"{diff_id.hex}-{MAKER}.json"
    descriptor = _remembered(note, blobs)
    if descriptor is None:
        note.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(note.with_suffix(".lock")):
            descriptor = _remembered(note, blobs) or _compressed(rootfs, note, blobs, say)
    return BaseLayer(diff_id, descriptor, partial(_copy, blobs, descriptor.digest))


def rootfs_tree(rootfs: Path, diff_id: Digest, cache_dir: Path) -> BaseTree:
    """Return what is known of the folders in a tar; raises BuildError where it is none."""
    memory, diff_ids = TreeMemory(cache_dir), (str(diff_id),)
    found = memory.read(diff_ids)
    if found is None:
        try:
            with rootfs.open("rb") as file:
                found = base_tree([file])
        except (OSError, NotATarError) as error:
            raise BuildError(
                f"the root file system cannot be read: {error}",
                hint="delete the file, so that it is made anew",
                location=Location(str(rootfs)),
            ) from None
        memory.write(diff_ids, found)
    return found


def _remembered(note: Path, blobs: BlobStore) -> Descriptor | None:
    """Return what is remembered, as long as the blob is still in the store; a damaged note is as good as none."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        kept = json.loads(note.read_text(encoding="utf-8"))
        digest = Digest(str(kept["digest"]))
        if blobs.has(digest):
            return Descriptor(MediaType.OCI_LAYER_GZIP, digest, blobs.size_bytes(digest))
    return None


def _compressed(rootfs: Path, note: Path, blobs: BlobStore, say: Callable[[str], None]) -> Descriptor:
    say(f"compressing the base, {rootfs.stat().st_size / _MIB:,.0f} MiB: once only")
    try:
        with rootfs.open("rb") as file, blobs.writer() as writer:
            for member in gzip_members(file):
                writer.write(member)
    except OSError as error:
        raise BuildError(f"the base cannot be compressed: {error}", location=Location(str(rootfs))) from None
    with suppress(OSError):
        write_whole(note, json.dumps({"digest": writer.digest.hex}))
    return Descriptor(MediaType.OCI_LAYER_GZIP, writer.digest, writer.size_bytes)


def _copy(source: BlobStore, digest: Digest, target: BlobStore) -> None:
    if not target.has(digest):
        target.link(source.path(digest), digest)
