"""Which blob of the layer cache a layer's tar became, by its diff id; and a tar that has none becomes one, once.

<cache>/oci/layers/gzip-<diff id>-<compressor>.json   the blob of a layer that an engine saved

What was compressed here comes first, since registries may have it from an earlier push, then what was assembled.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from contextlib import closing, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from lj_image.builders.oci.base_rootfs import remembered_layer
from lj_image.builders.oci.fresh_gzip import MAKER, gzip_members
from lj_image.builders.oci.layer_cache import LayerCache
from lj_image.builders.oci.processors import processors
from lj_image.errors import ArtifactError, EngineError
from lj_image.oci.descriptor import Descriptor
from lj_image.oci.digest import Digest
from lj_image.oci.media_types import MediaType
from lj_image.oci.streams import ChunkReader, HashingChunks
from lj_image.whole import write_whole

_MOST_WORKERS: Final = 12
"""Each holds a few MiB, and no engine hands out more than a dozen of them compress."""


class KnownLayers:
    """The layers of a cache by their diff ids."""

    def __init__(self, cache: LayerCache) -> None:
        self._cache = cache

    def find(self, diff_id: Digest) -> Descriptor | None:
        """Return the blob of a layer, None where there is none or it is gone."""
        return (
            self._saved(diff_id)
            or self._assembled.get(diff_id)
            or remembered_layer(diff_id, blobs=self._cache.blobs, cache_dir=self._cache.folder.parent)
        )

    def compress(self, chunks: Iterable[bytes], expected: Collection[Digest]) -> tuple[Digest, Descriptor]:
        """Compress the tar of a layer into the cache and remember it; return its diff id, and the blob's descriptor.

        Raises EngineError for a tar that is none of those expected, OSError where it cannot be written; then nothing
        is left of it.
        """
        with HashingChunks(chunks) as plain, self._cache.blobs.writer() as writer:
            with closing(gzip_members(ChunkReader(plain), workers=min(processors(), _MOST_WORKERS))) as members:
                for member in members:
                    writer.write(member)
            diff_id = Digest(plain.hexdigest())
            if diff_id not in expected:
                raise EngineError(
                    f"the engine saved a layer {diff_id} that the image does not name",
                    hint="build the image again; the engine's store may be damaged",
                )
        kept = {"digest": str(writer.digest), "size_bytes": writer.size_bytes, "tar_bytes": plain.size_bytes}
        write_whole(self._note(diff_id), json.dumps(kept), mode=0o644)
        return diff_id, Descriptor(MediaType.OCI_LAYER_GZIP, writer.digest, writer.size_bytes)

    def _saved(self, diff_id: Digest) -> Descriptor | None:
        note = self._note(diff_id)
        found = self._described(_read(note))
        if found is not None:
            self._cache.touch(note)
        return found

    @cached_property
    def _assembled(self) -> Mapping[Digest, Descriptor]:
        """Read the notes on layers that were assembled here; they are named by recipes."""
        found: dict[Digest, Descriptor] = {}
        for path in sorted((self._cache.folder / "layers").glob("[!.]*.json")):
            note = _read(path)
            blob = note.get("blob")
            if not isinstance(blob, dict) or (described := self._described({**note, **blob})) is None:
                continue
            with suppress(KeyError, ArtifactError):
                found.setdefault(Digest.parse(str(blob["diff_id"])), described)
        return found

    def _described(self, note: Mapping[str, Any]) -> Descriptor | None:
        """Return the blob that a note names, as long as it is there; a damaged note is as good as none."""
        with suppress(ValueError, KeyError, TypeError, ArtifactError):
            digest, size_bytes = Digest.parse(str(note["digest"])), int(note["size_bytes"])
            if self._cache.blobs.size_bytes(digest) == size_bytes:
                media_type = str(note.get("media_type", MediaType.OCI_LAYER_GZIP))
                return Descriptor(media_type, digest, size_bytes, dict(note.get("annotations", {})))
        return None

    def _note(self, diff_id: Digest) -> Path:
        return self._cache.folder / "layers" / f"gzip-{diff_id.hex}-{MAKER}.json"


def _read(path: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError, RecursionError):
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return found
    return {}
