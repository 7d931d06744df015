"""What the layer cache holds: images, the layers that they and later builds share, and what nobody needs."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from lj_image.builders.oci.layer_cache import LayerCache
from lj_image.builders.oci.layer_job import PARTIAL
from lj_image.errors import ArtifactError
from lj_image.oci.blobs import BlobStore
from lj_image.oci.descriptor import Descriptor
from lj_image.oci.digest import Digest
from lj_image.oci.manifest import Index, Manifest
from lj_image.oci.media_types import INDEXES

Kind = Literal["image", "layer", "blob", "beginning", "note"]
BEGINNINGS: Final = (f"{PARTIAL}*", ".blob-*", ".partial-*", ".*.partial", "layers/.*.partial")
"""What killed writers leave: of layers, blobs, links and notes (`layer_job`, `oci.blobs`, `whole`)."""


@dataclass(frozen=True, slots=True)
class Holding:
    """Something in the cache that can go by itself."""

    kind: Kind
    title: str
    size_bytes: int
    last_used: float
    """Seconds since 1970."""
    paths: tuple[Path, ...] = ()
    """All files that go with it."""

    def to_json(self) -> dict[str, Any]:
        """Return what `--json` prints of it."""
        return {"kind": self.kind, "title": self.title, "size_bytes": self.size_bytes}


@dataclass(frozen=True, slots=True)
class CachedImage:
    """An image by its name in the cache's layout."""

    name: str
    digest: Digest
    size_bytes: int
    """Of its documents and layers, a base's in a registry included."""
    last_used: float
    documents: frozenset[Digest] = frozenset()
    """Manifests, indexes and configurations."""
    layers: frozenset[Digest] = frozenset()
    is_damaged: bool = False
    """Whether a document of it is missing, or another one than its digest says."""

    def to_json(self, now: float) -> dict[str, Any]:
        """Return what `--json` prints of it."""
        return {
            "name": self.name,
            "digest": str(self.digest),
            "size_bytes": self.size_bytes,
            "unused_s": round(max(0.0, now - self.last_used)),
            "damaged": self.is_damaged,
        }


@dataclass(frozen=True, slots=True)
class Stock:
    """All that a cache holds."""

    images: tuple[CachedImage, ...]
    layers: tuple[Holding, ...]
    """A base's among them; each was used at least as late as every image that has it."""
    litter: tuple[Holding, ...]
    """What no image and no later build can use."""
    size_bytes: int
    """Of all blobs and beginnings."""


def stock_of(cache: LayerCache, *, is_alone: bool) -> Stock:
    """Look through a cache; beginnings are litter only for who is alone, since others may be writing them.

    A damaged note is litter. Raises ArtifactError where the index of the layout cannot be read.
    """
    images = tuple(_image(cache.blobs, name, item) for name, item in sorted(cache.layout().references().items()))
    sizes = _blobs(cache)
    notes = {path: _digests_in(path) for path in _note_paths(cache)}
    useful = {path: digests for path, digests in notes.items() if digests and digests <= sizes.keys()}
    layers = tuple(_layers(cache, images, useful, sizes))
    documents = frozenset(digest for image in images for digest in image.documents)
    known = documents | {Digest(item.title) for item in layers}
    litter = (
        *(_blob(cache, digest, size) for digest, size in sorted(sizes.items()) if digest not in known),
        *(_beginning(path) for path in sorted({*_beginnings(cache)}) if is_alone),
        *(_note(path) for path in sorted({*(notes.keys() - useful.keys()), *_alone(cache)})),
    )
    begun = sum(item.size_bytes for item in litter if item.kind == "beginning")
    return Stock(images, layers, litter, sum(sizes.values()) + begun)


def _image(blobs: BlobStore, name: str, item: Descriptor) -> CachedImage:
    used = _time(blobs.path(item.digest))
    try:
        found = frozenset(_parts(blobs, item))
    except ArtifactError:
        return CachedImage(name, item.digest, item.size_bytes, used, frozenset({item.digest}), is_damaged=True)
    layers = frozenset(part.digest for part, is_layer in found if is_layer)
    documents = frozenset(part.digest for part, is_layer in found if not is_layer)
    sizes = {part.digest: part.size_bytes for part, _ in found}
    is_damaged = not all(map(blobs.has, documents))
    return CachedImage(name, item.digest, sum(sizes.values()), used, documents, layers, is_damaged)


def _parts(blobs: BlobStore, item: Descriptor) -> Iterator[tuple[Descriptor, bool]]:
    """Yield all that belongs to a manifest or an index, and whether it is a layer."""
    yield item, False
    if item.media_type in INDEXES:
        for below in Index.parse(blobs.read(item.digest)).manifests:
            yield from _parts(blobs, below)
        return
    manifest = Manifest.parse(blobs.read(item.digest))
    yield manifest.config, False
    yield from ((layer, True) for layer in manifest.layers)


def _layers(
    cache: LayerCache,
    images: Iterable[CachedImage],
    notes: Mapping[Path, frozenset[Digest]],
    sizes: Mapping[Digest, int],
) -> Iterator[Holding]:
    used: dict[Digest, float] = defaultdict(float)
    about: dict[Digest, set[Path]] = defaultdict(set)
    for image in images:
        for digest in image.layers & sizes.keys():
            used[digest] = max(used[digest], image.last_used)
    for path, digests in notes.items():
        for digest in digests:
            used[digest] = max(used[digest], _time(path))
            about[digest] |= {path, path.with_suffix(".files")}
    for digest, at in sorted(used.items()):
        yield Holding("layer", digest.hex, sizes[digest], at, (cache.blobs.path(digest), *sorted(about[digest])))


def _blobs(cache: LayerCache) -> dict[Digest, int]:
    found = {}
    for path in (cache.folder / "blobs" / "sha256").glob("*"):
        with suppress(ArtifactError, OSError):  # no blob, or gone meanwhile
            found[Digest(path.name)] = path.stat().st_size
    return found


def _note_paths(cache: LayerCache) -> list[Path]:
    """Return the notes on layers of releases and of bases (`layer_cache`, `base_rootfs`)."""
    bases = (path for path in (cache.folder.parent / "bases").glob("*.json") if "-tree-" not in path.name)
    return [*(cache.folder / "layers").glob("[!.]*.json"), *bases]


def _digests_in(path: Path) -> frozenset[Digest]:
    """Return every digest of a blob that a note names; none where it cannot be believed."""
    with suppress(OSError, ValueError, ArtifactError, RecursionError):
        return frozenset(_named(json.loads(path.read_text(encoding="utf-8"))))
    return frozenset()


def _named(value: Any) -> Iterator[Digest]:
    if not isinstance(value, dict):
        return
    for key, below in value.items():
        if key == "digest" and isinstance(below, str):
            yield Digest(below.removeprefix("sha256:"))  # the notes on bases have the hex alone
        else:
            yield from _named(below)


def _alone(cache: LayerCache) -> Iterator[Path]:
    """Yield lists of files without the note that they belong to."""
    lists = (cache.folder / "layers").glob("[!.]*.files")
    return (path for path in lists if not path.with_suffix(".json").exists())


def _beginnings(cache: LayerCache) -> Iterator[Path]:
    return (path for pattern in BEGINNINGS for path in cache.folder.glob(pattern))


def _blob(cache: LayerCache, digest: Digest, size_bytes: int) -> Holding:
    path = cache.blobs.path(digest)
    return Holding("blob", digest.hex, size_bytes, _time(path), (path,))


def _beginning(path: Path) -> Holding:
    files = [path] if path.is_file() else [item for item in path.rglob("*") if item.is_file()]
    return Holding("beginning", path.name, sum(map(_size, files)), _time(path), (path,))


def _note(path: Path) -> Holding:
    return Holding("note", path.name, _size(path), _time(path), (path,))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _time(path: Path) -> float:
    """Return when a file was written or marked as used; now, for one that is gone."""
    try:
        return path.stat().st_mtime
    except OSError:
        return time.time()
