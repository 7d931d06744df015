"""Files that two layers bring: one hides the other, and pip would have complained or overwritten."""

from __future__ import annotations

from collections.abc import Sequence

from lj_image.builders.oci.compose import clash
from lj_image.builders.oci.layer_cache import CachedLayer, LayerCache
from lj_image.builders.oci.recipe import LayerRecipe


def require_no_clash(recipes: Sequence[LayerRecipe], layers: Sequence[CachedLayer], cache: LayerCache) -> None:
    """Raise BuildError for a path that two layers bring with different contents.

    Each combination of layers is looked at once; that none clashes is remembered.
    """
    if cache.is_known_good(layers):
        return
    seen: dict[str, tuple[str, int]] = {}
    for number, layer in enumerate(layers):
        for path, digest in cache.files(layer):
            before = seen.setdefault(path, (digest, number))
            if before[0] != digest:
                raise clash(path, f"the layer {recipes[before[1]].title}", f"the layer {recipes[number].title}")
    cache.remember_good(layers)
