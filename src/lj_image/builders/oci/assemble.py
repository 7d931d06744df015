"""Plan + base -> an image in the cache: layers, configuration, manifest."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lj_image.builders.oci.base_layer import OciBase
from lj_image.builders.oci.clashes import require_no_clash
from lj_image.builders.oci.compose import Ground
from lj_image.builders.oci.configuration import configured
from lj_image.builders.oci.crew import assemble_layers
from lj_image.builders.oci.layer_cache import CachedLayer, LayerCache
from lj_image.builders.oci.recipe import LayerRecipe
from lj_image.builders.oci.scheme import scheme_of
from lj_image.builders.oci.wheel.wheel import Wheel
from lj_image.catalog.names import normalised
from lj_image.errors import UsageError
from lj_image.oci.descriptor import Descriptor, descriptor_of
from lj_image.oci.image_config import AddedLayer, History, ImageConfig
from lj_image.oci.manifest import Manifest
from lj_image.oci.media_types import MediaType
from lj_image.plan import AptLayer, ArchiveLayer, Layer, PipLayer, Plan, RunLayer, layer_size_bytes

LayerCompression = Literal["gzip", "zstd"]
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Stamps:
    """What of an image's configuration is not decided by the plan alone."""

    created: str
    """RFC 3339."""
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AssembledImage:
    """A finished image; all but the base's layers is in the cache."""

    manifest: Descriptor
    config: ImageConfig
    layers: tuple[CachedLayer, ...]
    """Those above the base."""
    base: OciBase

    @property
    def image_id(self) -> str:
        """The configuration's digest, by which engines name an image."""
        return str(self.config.digest)


def require_assemblable(plan: Plan) -> None:
    """Raise UsageError, before any work, for layers that only a running container can make."""
    stuck = [layer for layer in plan.layers if isinstance(layer, (AptLayer, RunLayer))]
    if stuck:
        names = ", ".join(f"{layer.title} (kind {layer.kind})" for layer in stuck)
        raise UsageError(
            f"the oci builder runs nothing, and these need an engine: {names}",
            hint="build with: --builder docker (set DOCKER_HOST to an engine elsewhere if there is none here)\n"
            "or leave them out: --only NAME,…",
        )


def recipes_of(
    plan: Plan, base: OciBase, *, files: Mapping[str, tuple[str, str, Path]], is_lazy: bool = False
) -> tuple[LayerRecipe, ...]:
    """Return the recipe of each layer; `files` gives name, sha256 and place of each locked file by its sha256."""
    scheme, ground = scheme_of(plan.release.base.facts), _ground(plan, base, files)
    return tuple(
        LayerRecipe(
            layer=layer,
            scheme=scheme,
            ground=ground,
            wheels=tuple(Wheel(path, file, sha256) for file, sha256, path in _files(layer, files)),
            archive=files[layer.archive.artifact.sha256][2] if isinstance(layer, ArchiveLayer) else None,
            workdir=plan.release.config.workdir if layer is plan.layers[-1] else None,
            bytecode=plan.release.bytecode,
            is_lazy=is_lazy,
        )
        for layer in plan.layers
    )


def assemble(
    plan: Plan,
    base: OciBase,
    recipes: Sequence[LayerRecipe],
    stamps: Stamps,
    cache: LayerCache,
    *,
    workers: int | None = None,
    anew: bool = False,
    compression: LayerCompression = "gzip",
    zstd_level: int = 3,
    say: Say = lambda line: None,
) -> AssembledImage:
    """Assemble an image into the cache; layers that are there already are taken as they are, unless `anew`.

    Raises BuildError for a file that no layer can hold, and for two that claim one path; ArtifactError for a damaged
    blob in the cache.
    """
    layers = _assembled(recipes, cache, workers, anew, say)
    require_no_clash(recipes, layers, cache)
    config = configured(base.config, plan, stamps.labels, stamps.created)
    config = config.with_layers(_steps(recipes, layers, stamps.created))
    if compression == "zstd":
        from lj_image.builders.oci.zstd_layers import compressed_layers  # late: it loads zstd, which few images need

        layers = compressed_layers(layers, cache, level=zstd_level, workers=workers, anew=anew, say=say)
    content = config.to_bytes()
    manifest = Manifest(
        config=descriptor_of(content, MediaType.OCI_CONFIG),
        layers=(*(layer.descriptor for layer in base.layers), *map(layer_descriptor, layers)),
    )
    cache.blobs.put(content)
    cache.blobs.put(manifest.to_bytes())
    return AssembledImage(manifest.descriptor(), config, layers, base)


def layer_descriptor(layer: CachedLayer) -> Descriptor:
    """Describe an assembled layer for a manifest."""
    return Descriptor(layer.media_type, layer.digest, layer.blob.size_bytes, annotations=layer.annotations)


def _files(layer: Layer, files: Mapping[str, tuple[str, str, Path]]) -> Iterable[tuple[str, str, Path]]:
    return [files[item.artifact.sha256] for item in layer.distributions] if isinstance(layer, PipLayer) else []


def _ground(plan: Plan, base: OciBase, files: Mapping[str, tuple[str, str, Path]]) -> Ground:
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    owners = {item.name: files[item.artifact.sha256][0] for item in plan.installed()}
    return Ground(
        folder_links=base.tree.folder_links,
        folders=base.tree.folders,
        winners={path: owners.get(normalised(name), name) for path, name in plan.release.owners},
        epoch=int(epoch) if epoch.isdigit() else None,
    )


def _assembled(
    recipes: Sequence[LayerRecipe], cache: LayerCache, workers: int | None, anew: bool, say: Say
) -> tuple[CachedLayer, ...]:
    found = {
        number: None if anew else cache.find(recipe.key(), recipe.ground.epoch) for number, recipe in enumerate(recipes)
    }
    missing = [number for number, layer in found.items() if layer is None]
    sized = [(recipes[number], layer_size_bytes(recipes[number].layer)) for number in missing]

    def done(at: int, layer: CachedLayer) -> None:
        size_mib = layer.blob.size_bytes / 1024**2
        say(f"layer {missing[at] + 1}/{len(recipes)} {recipes[missing[at]].title}: {size_mib:,.1f} MiB")

    made = assemble_layers(sized, cache.folder.parent, workers=workers, done=done, anew=anew) if missing else ()
    found |= dict(zip(missing, made, strict=True))
    return tuple(layer for layer in found.values() if layer is not None)


def _steps(recipes: Sequence[LayerRecipe], layers: Sequence[CachedLayer], created: str) -> list[AddedLayer]:
    from lj_image.oci.digest import Digest

    return [
        AddedLayer(Digest.parse(layer.blob.diff_id), History(_created_by(recipe), created))
        for recipe, layer in zip(recipes, layers, strict=True)
    ]


def _created_by(recipe: LayerRecipe) -> str:
    """Return the history's line of a layer: its title, and the versions in it."""
    layer = recipe.layer
    if not isinstance(layer, PipLayer):
        return f"lj-image: {layer.title}"
    return f"lj-image: {layer.title}: {', '.join(f'{item.name} {item.version}' for item in layer.distributions)}"
