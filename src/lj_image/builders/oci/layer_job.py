"""One layer is assembled: by whoever takes its lock first, in this process or in one beside it."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from lj_image.builders.oci.compose import Composition
from lj_image.builders.oci.entries import File, HardLink, Symlink
from lj_image.builders.oci.layer_cache import CachedLayer, LayerCache
from lj_image.builders.oci.layer_writer import LayerBlob, LayerWriter
from lj_image.builders.oci.recipe import LayerRecipe
from lj_image.errors import BuildError

PARTIAL = ".layer-"
"""How the name of a layer begins while it is written; what a killed build left is removed by `cache gc`."""


def assemble_layer(recipe: LayerRecipe, cache_dir: Path) -> CachedLayer:
    """Return the layer of a recipe, assembled now unless it is in the cache.

    Raises BuildError for a file that is not what it promises, or that no layer can hold.
    """
    cache, key, epoch = LayerCache(cache_dir), recipe.key(), recipe.ground.epoch
    with cache.writing(key):
        if (found := cache.find(key, epoch)) is not None:
            return found
        number, name = tempfile.mkstemp(prefix=PARTIAL, dir=cache.folder)
        partial = Path(name)
        try:
            with os.fdopen(number, "wb", buffering=0) as target:
                layer, files = _written(recipe, key, target)
            cache.blobs.adopt(partial, layer.digest)
            return cache.write(layer, epoch, files)
        except OSError as error:
            raise _cannot_write(recipe, cache, error) from None
        finally:
            with suppress(OSError):
                partial.unlink()


def _written(recipe: LayerRecipe, key: str, target: BinaryIO) -> tuple[CachedLayer, dict[str, str]]:
    composition = Composition(recipe.ground)
    files: dict[str, str] = {}
    with LayerWriter(target) as writer:
        for entry in composition.entries(recipe.sources()):
            digest = writer.add(entry)
            if isinstance(entry, File):
                files[entry.path] = digest
            elif isinstance(entry, (Symlink, HardLink)):
                files[entry.path] = f"→{entry.target}"
        blob: LayerBlob = writer.finish()
    return CachedLayer(key, blob, composition.newest), files


def _cannot_write(recipe: LayerRecipe, cache: LayerCache, error: OSError) -> BuildError:
    return BuildError(
        f"the layer {recipe.title} cannot be written to {cache.folder}: {error.strerror or error}",
        hint="make room (`lj-image cache gc`), or set `cache:` in the config (or LJ_IMAGE_CACHE) to a larger disk",
    )
