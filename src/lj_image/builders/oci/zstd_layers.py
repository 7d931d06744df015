"""Layers in gzip -> the same layers in zstd: smaller, and unpacked several times faster, where both ends know it.

A tar stays what it is, and so does its diff id; only the blob is another one. What a layer becomes is remembered beside
it, by the digest of the gzip, the level and the library's version, which together decide about every byte.

The layers of a base stay as they are: registries and nodes have them already, under their own digests. A manifest
may have both (OCI image spec, layer.md: each descriptor has its own media type).
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import zstandard

from lj_image.builders.oci.crew import make_side_by_side
from lj_image.builders.oci.layer_cache import CachedLayer, LayerCache
from lj_image.errors import ArtifactError, Location
from lj_image.oci.digest import Digest
from lj_image.oci.media_types import MediaType
from lj_image.oci.streams import BLOCK_BYTES, ChunkReader, HashingChunks, decompressed
from lj_image.whole import write_whole

Say = Callable[[str], None]

ZSTD: Final = ".".join(map(str, zstandard.ZSTD_VERSION))
"""The version of the library, which decides about the bytes."""
_THREADS: Final = 0
"""In one layer: none but the caller. Any number above gives other bytes than none, and three times the memory (255 MiB
at level 3), but hardly earlier, since inflating and hashing the gzip take as long as compressing at that level. Layers
are compressed side by side instead, each in a process of its own."""


def compressed_layers(
    layers: Sequence[CachedLayer],
    cache: LayerCache,
    *,
    level: int,
    workers: int | None = None,
    anew: bool = False,
    say: Say = lambda line: None,
) -> tuple[CachedLayer, ...]:
    """Return the layers in zstd, in their order; those that were compressed before are taken as they are.

    Raises ArtifactError for a blob in the cache that is missing or damaged, BuildError where one cannot be written.
    """
    found = {number: None if anew else _remembered(layer, cache, level) for number, layer in enumerate(layers)}
    missing = [number for number, layer in found.items() if layer is None]

    def done(at: int, layer: CachedLayer) -> None:
        before, after = layers[missing[at]].blob.size_bytes / 1024**2, layer.blob.size_bytes / 1024**2
        say(f"layer {missing[at] + 1}/{len(layers)} in zstd: {after:,.1f} MiB instead of {before:,.1f} MiB")

    make = partial(compress_layer, cache_dir=cache.folder.parent, level=level, anew=anew)
    jobs = [(layers[number], layers[number].blob.tar_bytes) for number in missing]
    found |= dict(zip(missing, make_side_by_side(jobs, make, workers=workers, done=done), strict=True))
    return tuple(layer for layer in found.values() if layer is not None)


def compress_layer(layer: CachedLayer, *, cache_dir: Path, level: int, anew: bool = False) -> CachedLayer:
    """Return one layer in zstd, compressed now unless it is in the cache; raises what `compressed_layers` raises."""
    cache = LayerCache(cache_dir)
    key = _key(layer, level)
    with cache.writing(key):
        if not anew and (found := _remembered(layer, cache, level)) is not None:
            return found
        try:
            digest, size_bytes = _compressed(layer, cache, level)
            kept = json.dumps({"digest": str(digest), "size_bytes": size_bytes})
            write_whole(_note(layer, cache, level), kept, mode=0o644)
        except OSError as error:
            raise cache.cannot_write("a layer in zstd", error) from None
    return _in_zstd(layer, digest, size_bytes)


def _compressed(layer: CachedLayer, cache: LayerCache, level: int) -> tuple[Digest, int]:
    compressor = zstandard.ZstdCompressor(level=level, write_checksum=True, threads=_THREADS)
    frame = compressor.compressobj(size=layer.blob.tar_bytes)
    try:
        with (
            cache.blobs.open(layer.digest) as file,
            HashingChunks(decompressed(file)) as chunks,
            cache.blobs.writer() as writer,
        ):
            tar = ChunkReader(chunks)
            while block := tar.read(BLOCK_BYTES):
                writer.write(frame.compress(block))
            if f"sha256:{chunks.hexdigest()}" != layer.blob.diff_id:
                raise _damaged(layer, cache, "its content is not what was assembled")
            writer.write(frame.flush())
    except (zlib.error, zstandard.ZstdError) as error:  # zstd: more or less than the size that was announced
        raise _damaged(layer, cache, str(error)) from None
    return writer.digest, writer.size_bytes


def _remembered(layer: CachedLayer, cache: LayerCache, level: int) -> CachedLayer | None:
    """Return what a layer became, as long as the blob is there; a damaged note is as good as none."""
    note = _note(layer, cache, level)
    with suppress(OSError, ValueError, KeyError, TypeError, ArtifactError):
        kept = json.loads(note.read_text(encoding="utf-8"))
        digest, size_bytes = Digest.parse(str(kept["digest"])), int(kept["size_bytes"])
        if cache.blobs.size_bytes(digest) == size_bytes:
            cache.touch(note)
            return _in_zstd(layer, digest, size_bytes)
    return None


def _in_zstd(layer: CachedLayer, digest: Digest, size_bytes: int) -> CachedLayer:
    blob = replace(layer.blob, digest=str(digest), size_bytes=size_bytes)
    return replace(layer, blob=blob, media_type=MediaType.OCI_LAYER_ZSTD)


def _key(layer: CachedLayer, level: int) -> str:
    return f"zstd-{layer.digest.hex}-{level}-{ZSTD}"


def _note(layer: CachedLayer, cache: LayerCache, level: int) -> Path:
    return cache.folder / "layers" / f"{_key(layer, level)}.json"


def _damaged(layer: CachedLayer, cache: LayerCache, why: str) -> ArtifactError:
    return ArtifactError(
        f"the layer {layer.digest} in the cache is damaged: {why}",
        hint="assemble it again: lj-image build --no-cache",
        location=Location(str(cache.blobs.path(layer.digest))),
    )
