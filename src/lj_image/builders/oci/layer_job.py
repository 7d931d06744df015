"""One layer is assembled: by whoever takes its lock first, in this process or in one beside it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from lj_image.builders.oci.compose import Composition, fingerprint
from lj_image.builders.oci.entries import Folder
from lj_image.builders.oci.estargz import EstargzWriter
from lj_image.builders.oci.inspected import Inspected
from lj_image.builders.oci.layer_blob import LayerBlob
from lj_image.builders.oci.layer_cache import CachedLayer, LayerCache
from lj_image.builders.oci.layer_writer import LayerWriter
from lj_image.builders.oci.recipe import LayerRecipe

PARTIAL = ".layer-"
"""How the name of a layer begins while it is written; what a killed build left is removed by `cache gc`."""


def assemble_layer(recipe: LayerRecipe, cache_dir: Path, anew: bool = False) -> CachedLayer:
    """Return the layer of a recipe, assembled now unless it is in the cache and `anew` does not ask for it.

    Raises BuildError for a file that is not what it promises, or that no layer can hold.
    """
    cache, key, epoch = LayerCache(cache_dir), recipe.key(), recipe.ground.epoch
    inspected = Inspected(cache_dir)
    with cache.writing(key):
        if not anew and (found := cache.find(key, epoch)) is not None:
            return found
        partial = cache.folder / f"{PARTIAL}{key}"  # of the lock's holder alone, who writes over what a killed one left
        try:
            with partial.open("wb") as target:
                layer, files = _written(recipe, key, target, inspected)
            cache.blobs.adopt(partial, layer.digest)
            inspected.remember(recipe.wheels)
            return cache.write(layer, epoch, files)
        except OSError as error:
            raise cache.cannot_write(f"the layer {recipe.title}", error) from None
        finally:
            with suppress(OSError):
                partial.unlink()


def _written(
    recipe: LayerRecipe, key: str, target: BinaryIO, inspected: Inspected
) -> tuple[CachedLayer, dict[str, str]]:
    trusted = [wheel.file for wheel in recipe.wheels if inspected.knows(wheel)]
    composition = Composition(recipe.ground)
    files: dict[str, str] = {}
    with EstargzWriter(target) if recipe.is_lazy else LayerWriter(target, trusted=trusted) as writer:
        for entry in composition.entries(recipe.sources()):
            writer.add(entry)
            if not isinstance(entry, Folder):
                files[entry.path] = fingerprint(entry)
        blob: LayerBlob = writer.finish()
    annotations = writer.annotations if isinstance(writer, EstargzWriter) else {}
    return CachedLayer(key, blob, composition.newest, annotations), files
