"""Assembled layers on this machine, by what they were made from: made once, ever, by whoever comes first.

<cache>/oci/                    an OCI layout: every image that was assembled here, by its reference
<cache>/oci/blobs/sha256/<hex>  layers, configurations, manifests
<cache>/oci/layers/<key>.json   what a recipe gave; its time is when that was last asked for
<cache>/oci/layers/<key>.files  path and content of each file, to find clashes between layers
<cache>/oci/layers/<key>.good   layers that were looked at together, and do not clash
<cache>/oci/layers/zstd-….json  what a layer became in zstd
<cache>/oci/locks/<key>.lock    one writer for a recipe
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from lj_image.builders.oci.layer_blob import LayerBlob
from lj_image.errors import ArtifactError, BuildError
from lj_image.oci.blobs import BlobStore
from lj_image.oci.digest import Digest
from lj_image.oci.layout import Layout
from lj_image.oci.media_types import MediaType
from lj_image.whole import write_whole


@dataclass(frozen=True, slots=True)
class CachedLayer:
    """A layer that was assembled."""

    key: str
    blob: LayerBlob
    newest: int
    """The latest time of an entry as it was published, before any clamping."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Of its descriptor: what eStargz says of it."""
    media_type: MediaType = MediaType.OCI_LAYER_GZIP

    @property
    def digest(self) -> Digest:
        """Of its blob."""
        return Digest.parse(self.blob.digest)


class LayerCache:
    """The layers below a cache folder; safe for several threads and processes."""

    def __init__(self, cache_dir: Path) -> None:
        self.folder = cache_dir / "oci"
        self.blobs = BlobStore(self.folder)

    def layout(self) -> Layout:
        """Return the OCI layout that the cache is."""
        return Layout.create(self.folder, among_others=True)

    def find(self, key: str, epoch: int | None) -> CachedLayer | None:
        """Return the layer of a recipe in which no time is later than `epoch`; a damaged note is as good as none.

        A layer whose files are all older than the epoch is the same with it and without it, so it is kept once.
        """
        plain = self._read(key)
        if plain is not None and (epoch is None or plain.newest <= epoch):
            return plain
        return None if epoch is None else self._read(_with_epoch(key, epoch))

    def write(self, layer: CachedLayer, epoch: int | None, files: Mapping[str, str]) -> CachedLayer:
        """Keep what is known of a layer whose blob is there."""
        key = layer.key if epoch is None or layer.newest <= epoch else _with_epoch(layer.key, epoch)
        kept = CachedLayer(key, layer.blob, layer.newest, dict(layer.annotations))
        lines = "".join(f"{fingerprint} {path}\n" for path, fingerprint in files.items())
        write_whole(self._path(key, "files"), lines.encode(errors="surrogateescape"), mode=0o644)
        write_whole(self._path(key, "json"), json.dumps(asdict(kept)), mode=0o644)
        return kept

    def files(self, layer: CachedLayer) -> Iterator[tuple[str, str]]:
        """Yield path and fingerprint of each file and link of a layer."""
        text = self._path(layer.key, "files").read_bytes().decode(errors="surrogateescape")
        for line in text.split("\n")[:-1]:
            fingerprint, _, path = line.partition(" ")
            yield path, fingerprint

    def is_known_good(self, layers: Iterable[CachedLayer]) -> bool:
        """Say whether these layers were looked at together, and none of their files clash."""
        return self._together(layers).exists()

    def remember_good(self, layers: Iterable[CachedLayer]) -> None:
        """Remember that."""
        with suppress(OSError):
            write_whole(self._together(layers), b"")

    def _together(self, layers: Iterable[CachedLayer]) -> Path:
        digest = hashlib.sha256("\n".join(layer.key for layer in layers).encode()).hexdigest()
        return self._path(digest, "good")

    def mark_used(self, digest: Digest) -> None:
        """Let the time of an image's manifest say that it was used now, which is what `cache gc` goes by."""
        self.touch(self.blobs.path(digest))

    def touch(self, path: Path) -> None:
        """Let the time of a file in the cache say that it was used now."""
        with suppress(OSError):  # a cache that is read-only
            os.utime(path)

    def cannot_write(self, what: str, error: OSError) -> BuildError:
        """Return the error for what found no place here."""
        return BuildError(
            f"{what} cannot be written to {self.folder}: {error.strerror or error}",
            hint="make room (`lj-image cache gc`), or set `cache:` in the config (or LJ_IMAGE_CACHE) to a larger disk",
        )

    @contextmanager
    def writing(self, key: str) -> Iterator[None]:
        """Be the only one who assembles a layer; others wait, and find it."""
        from filelock import FileLock

        folder = self.folder / "locks"
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / f"{key}.lock"):
            yield

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep everything as it is while a build needs it: `cache gc` waits for the end of this block."""
        with self._locked(fcntl.LOCK_SH):
            yield

    @contextmanager
    def alone(self, *, wait: bool = True) -> Iterator[bool]:
        """Be the only one in the cache; yields False where others are and `wait` is not asked for."""
        try:
            with self._locked(fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB)):
                yield True
        except BlockingIOError:
            yield False

    @contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        self.layout()
        number = os.open(self.folder / ".in-use", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(number, how)
            yield
        finally:
            os.close(number)

    def _read(self, key: str) -> CachedLayer | None:
        path = self._path(key, "json")
        with suppress(OSError, ValueError, KeyError, TypeError, ArtifactError):
            kept = json.loads(path.read_text())
            layer = CachedLayer(
                str(kept["key"]), LayerBlob(**kept["blob"]), int(kept["newest"]), dict(kept["annotations"])
            )
            if self.blobs.size_bytes(layer.digest) == layer.blob.size_bytes and self._path(key, "files").exists():
                self.touch(path)
                return layer
        return None

    def _path(self, key: str, kind: str) -> Path:
        return self.folder / "layers" / f"{key}.{kind}"


def _with_epoch(key: str, epoch: int) -> str:
    return f"{key}-{epoch}"
