"""Make room in the layer cache: what was not used for long, and what killed builds have left.

An image keeps its layers until it goes itself. Whoever removes is alone: running builds are waited for, and one that
starts meanwhile waits for the end.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lj_image.builders.oci.cache_stock import CachedImage, Holding, Stock, stock_of
from lj_image.builders.oci.layer_cache import LayerCache
from lj_image.errors import BuildError

Say = Callable[[str], None]
_KEY_DIGITS: Final = 64
"""Of a recipe's key, with which the names of its notes and of its lock begin."""


@dataclass(frozen=True, slots=True)
class CacheLimits:
    """How much is to go; without any limit only what nobody can use."""

    older_than_s: float | None = None
    """Only what was not used for so long."""
    keep_bytes: int | None = None
    """The longest unused goes first, only until the rest fits into this."""


@dataclass(frozen=True, slots=True)
class Removal:
    """What goes, or would go."""

    images: tuple[CachedImage, ...]
    holdings: tuple[Holding, ...]
    """Layers, and what nobody needs."""

    @property
    def freed_bytes(self) -> int:
        """Of all files that go."""
        return sum(item.size_bytes for item in self.holdings)


def collect(cache: LayerCache, limits: CacheLimits, *, dry_run: bool = False, say: Say) -> Removal:
    """Remove what the limits let go, and return it; a dry run only looks, and waits for nobody.

    Raises ArtifactError where the layout's index cannot be read, BuildError where a file cannot be removed.
    """
    with cache.alone(wait=False) as is_alone:
        if dry_run and not is_alone:
            say("a build is using the cache; what it needs is not known before its end")
        if is_alone or dry_run:
            return _collected(cache, limits, is_alone=is_alone, dry_run=dry_run)
    say("a build is using the cache; waiting for its end")
    with cache.alone():
        return _collected(cache, limits, is_alone=True, dry_run=False)


def chosen(stock: Stock, limits: CacheLimits, now: float) -> Removal:
    """Choose what goes: litter in any case, then the longest unused.

    No layer was used before an image that has it was, so that going by time, an image goes before its layers.
    """
    images: list[CachedImage] = [image for image in stock.images if image.is_damaged]
    layers: list[Holding] = []
    left = stock.size_bytes - sum(item.size_bytes for item in stock.litter if item.kind != "note")
    every: list[CachedImage | Holding] = [image for image in stock.images if not image.is_damaged]
    every += stock.layers
    for item in sorted(every, key=lambda item: (item.last_used, isinstance(item, Holding))):
        if not _may_go(item.last_used, left, limits, now):
            break
        if isinstance(item, Holding):
            layers.append(item)
            left -= item.size_bytes
        else:
            images.append(item)
    return Removal(tuple(images), (*layers, *stock.litter))


def _may_go(last_used: float, left_bytes: int, limits: CacheLimits, now: float) -> bool:
    if limits.older_than_s is None and limits.keep_bytes is None:
        return False
    if limits.older_than_s is not None and now - last_used < limits.older_than_s:
        return False
    return limits.keep_bytes is None or left_bytes > limits.keep_bytes


def _collected(cache: LayerCache, limits: CacheLimits, *, is_alone: bool, dry_run: bool) -> Removal:
    stock = stock_of(cache, is_alone=is_alone)
    going = chosen(stock, limits, time.time())
    going = Removal(going.images, (*going.holdings, *_documents(cache, going.images, stock.images)))
    if not dry_run:
        cache.layout().drop_references(image.name for image in going.images)  # first: what is named must be there
        _remove(cache, going)
    return going


def _documents(cache: LayerCache, going: Iterable[CachedImage], every: Iterable[CachedImage]) -> Iterable[Holding]:
    """Return the documents that only images that go have."""
    going = tuple(going)
    kept = {digest for image in every if image not in going for digest in image.documents}
    for digest in sorted({digest for image in going for digest in image.documents} - kept):
        if cache.blobs.has(digest):
            path = cache.blobs.path(digest)
            yield Holding("blob", digest.hex, path.stat().st_size, 0.0, (path,))


def _remove(cache: LayerCache, going: Removal) -> None:
    # Notes before blobs: a note without its blob would be believed by nobody, but a killed run should leave no litter.
    paths = [path for item in going.holdings for path in reversed(item.paths)]
    if any(item.kind == "layer" for item in going.holdings):
        paths += (cache.folder / "layers").glob("*.good")  # which layers they are about, their names do not say
    for path in paths:
        _remove_path(path)
    for path in _idle_locks(cache):
        _remove_path(path)


def _idle_locks(cache: LayerCache) -> Iterator[Path]:
    """Yield the locks of recipes whose layers are not there; while we are alone, nobody holds any."""
    known = {path.name[:_KEY_DIGITS] for path in (cache.folder / "layers").glob("*.json")}
    return (path for path in (cache.folder / "locks").glob("*.lock") if path.name[:_KEY_DIGITS] not in known)


def _remove_path(path: Path) -> None:
    with suppress(FileNotFoundError):
        try:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        except PermissionError as error:
            raise BuildError(
                f"{path} cannot be removed: {error.strerror}", hint="the cache belongs to another user: run it as them"
            ) from None
