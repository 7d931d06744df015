"""Assemble: lock, files, base and layers come together without an engine, and the record is written."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lj_image import __version__
from lj_image.builders.oci.assemble import (
    AssembledImage,
    LayerCompression,
    Stamps,
    assemble,
    layer_descriptor,
    recipes_of,
    require_assemblable,
)
from lj_image.builders.oci.base import base_of
from lj_image.builders.oci.base_layer import OciBase
from lj_image.builders.oci.estargz import require_not_lazy
from lj_image.builders.oci.layer_cache import LayerCache
from lj_image.builders.oci.recipe import LayerRecipe
from lj_image.config import Config
from lj_image.dockerfile import labels
from lj_image.errors import UsageError
from lj_image.lock.progress import Progress
from lj_image.lock.store import ArtifactStore
from lj_image.oci.descriptor import Descriptor
from lj_image.oci.digest import Digest
from lj_image.oci.manifest import Index, Manifest
from lj_image.oci.source import SourceImage, image_in
from lj_image.plan import Plan, plan_digest
from lj_image.release.files import fetch_missing
from lj_image.release.provenance import revision_and_time
from lj_image.release.record import ASSEMBLED, Built, Record, Records

if TYPE_CHECKING:
    from lj_image.lock.lock import Artifact, LockedDistribution

Say = Callable[[str], None]

INPUTS_LABEL: Final = "io.lj-image.inputs"


@dataclass(frozen=True, slots=True)
class AssemblyOptions:
    """How to assemble."""

    base: str | None = None
    """Another place to take the base from: a file, a folder or a reference."""
    compression: LayerCompression = "gzip"
    is_lazy: bool = False
    no_cache: bool = False
    workers: int | None = None


@dataclass(frozen=True)
class Shop:
    """What an assembly works with; nothing of the release itself."""

    config: Config
    store: ArtifactStore
    records: Records
    cache: LayerCache
    say: Say
    progress: Progress


@dataclass(frozen=True, slots=True)
class Assembly:
    """An image in the cache's layout."""

    plan: Plan
    built: Built
    manifest: Descriptor
    base: OciBase
    up_to_date: bool

    @property
    def reference(self) -> str:
        """Its name in the layout, and in an engine that loads it."""
        return self.built.tag

    def complete(self, cache: LayerCache) -> SourceImage:
        """Return the image with all its layers in the cache; those of a base in a registry are copied now."""
        for layer in self.base.layers:
            layer.copy(cache.blobs)
        return image_in(cache.blobs, self.manifest, self.reference)


@dataclass(frozen=True, slots=True)
class _Prepared:
    plan: Plan
    base: OciBase
    recipes: tuple[LayerRecipe, ...]
    plan_digest: str
    inputs: str

    @property
    def tag(self) -> str:
        return f"{self.plan.release.image}:{self.plan.tag}"


def assemble_releases(plans: Sequence[Plan], options: AssemblyOptions, shop: Shop) -> tuple[Assembly, ...]:
    """Assemble one image for each plan; several platforms of a release become one index under the tag.

    What needs an engine is refused before anything is done, and a base that is missing before anything is fetched.
    Raises UsageError, BuildError, ArtifactError.
    """
    require_not_lazy(options.compression, is_lazy=options.is_lazy)
    _require_possible(plans)
    with shop.cache.in_use():
        found = tuple(_each_assembled(plans, options, shop))
        named = found[0].manifest if len(found) == 1 else _index(found, shop.cache)
        shop.cache.layout().set_reference(found[0].reference, named)
        shop.cache.mark_used(named.digest)
    return found


def _index(found: Sequence[Assembly], cache: LayerCache) -> Descriptor:
    index = Index(tuple(replace(item.manifest, platform=item.base.config.platform) for item in found))
    cache.blobs.put(index.to_bytes())
    return index.descriptor()


def _require_possible(plans: Sequence[Plan]) -> None:
    for number, plan in enumerate(plans):
        if plan.key in (before.key for before in plans[:number]):
            raise UsageError(f"the platform {plan.release.platform} is asked for twice", hint="name each one once")
        require_assemblable(plan)


def _each_assembled(plans: Sequence[Plan], options: AssemblyOptions, shop: Shop) -> Iterator[Assembly]:
    started = time.monotonic()
    bases = [_base(plan, options, shop) for plan in plans]
    for plan, base in zip(plans, bases, strict=True):
        yield _assembled(plan, base, options, shop, started)
        started = time.monotonic()


def _assembled(plan: Plan, base: OciBase, options: AssemblyOptions, shop: Shop, started: float) -> Assembly:
    release = plan.release
    shop.say(f"{release.image} {release.name}, variant {release.variant} ({release.variant_reason})")
    prepared = _prepare(plan, base, options, shop)
    known = None if options.no_cache else _present(prepared, shop)
    if known is not None:
        return Assembly(plan, known[0], known[1], prepared.base, True)
    image = assemble(
        plan,
        prepared.base,
        prepared.recipes,
        _stamps(prepared),
        shop.cache,
        workers=options.workers,
        anew=options.no_cache,
        compression=options.compression,
        zstd_level=shop.config.values.build.zstd_level,
        say=shop.say,
    )
    built = _recorded(prepared, image, time.monotonic() - started, shop.records)
    return Assembly(plan, built, image.manifest, prepared.base, False)


def _base(plan: Plan, options: AssemblyOptions, shop: Shop) -> OciBase:
    return base_of(
        plan.release.base,
        plan.release.platform,
        config=shop.config,
        blobs=shop.cache.blobs,
        override=options.base,
        say=shop.say,
    )


def _prepare(plan: Plan, base: OciBase, options: AssemblyOptions, shop: Shop) -> _Prepared:
    fetch_missing(plan, shop.config, shop.store, shop.progress)
    recipes = recipes_of(plan, base, files=_files(plan, base, shop), is_lazy=options.is_lazy)
    level, digest = shop.config.values.build.zstd_level, plan_digest(plan)
    return _Prepared(plan, base, recipes, digest, _inputs(plan, digest, base, recipes, options, level))


def _files(plan: Plan, base: OciBase, shop: Shop) -> Mapping[str, tuple[str, str, Path]]:
    """Return name, sha256 and place of each locked file by its sha256; of a source, those of its wheel."""
    found = {}
    for item in plan.locked():
        artifact = item.artifact
        if artifact.kind == "sdist":
            artifact = _wheel_of_source(item, plan, base, shop)  # type: ignore[arg-type]  # archives are no sdists
        found[item.artifact.sha256] = (artifact.file, artifact.sha256, shop.store.path(artifact.sha256))
    return found


def _wheel_of_source(item: LockedDistribution, plan: Plan, base: OciBase, shop: Shop) -> Artifact:
    from lj_image.builders.oci.source_wheels import wheel_of_source

    env = plan.release.build_env(item.component)
    return wheel_of_source(item, base, plan.release.base.facts, shop.store, shop.config, env=env, say=shop.say)


def _inputs(
    plan: Plan, digest: str, base: OciBase, recipes: Sequence[LayerRecipe], options: AssemblyOptions, zstd_level: int
) -> str:
    facts = [
        digest,
        base.digest,
        [recipe.key() for recipe in recipes],
        recipes[0].ground.epoch if recipes else None,
        options.compression if options.compression == "gzip" else f"{options.compression}-{zstd_level}",
        sorted(labels(plan)),
    ]
    return "sha256:" + hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _present(prepared: _Prepared, shop: Shop) -> tuple[Built, Descriptor] | None:
    """Return what is recorded of the image under the tag, and its manifest, when it was made from these very inputs."""
    record = shop.records.read(prepared.plan.key)
    built = record.built if record else None
    if built is None or not built.is_assembled or built.inputs != prepared.inputs or built.manifest is None:
        return None
    blobs, digest = shop.cache.blobs, Digest.parse(built.manifest)
    if not blobs.has(digest):
        return None
    manifest = Manifest.parse(blobs.read(digest))
    own = manifest.layers[len(prepared.base.layers) :]
    if not all(blobs.has(item.digest) for item in (manifest.config, *own)):
        return None
    return built, manifest.descriptor()


def _stamps(prepared: _Prepared) -> Stamps:
    release = prepared.plan.release
    revision, created = revision_and_time(release.folder, release.date)
    stamped = {
        "org.opencontainers.image.revision": revision,
        "org.opencontainers.image.created": created,
        "org.opencontainers.image.base.digest": prepared.base.digest,
        INPUTS_LABEL: prepared.inputs,
    }
    return Stamps(created, stamped | dict(labels(prepared.plan)))


def _recorded(prepared: _Prepared, image: AssembledImage, seconds: float, records: Records) -> Built:
    plan, release = prepared.plan, prepared.plan.release
    layers = (*(layer.descriptor for layer in image.base.layers), *map(layer_descriptor, image.layers))
    built = Built(
        image_id=image.image_id,
        tag=prepared.tag,
        inputs=prepared.inputs,
        plan=prepared.plan_digest,
        lock=plan.lock.digest,
        builder=ASSEMBLED,
        base=f"{image.base.name}@{image.base.digest}",
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(seconds, 1),
        size_bytes=sum(layer.size_bytes for layer in layers),
        partial=bool(plan.only),
        overridden=dict(release.overridden),
        manifest=str(image.manifest.digest),
    )

    def change(record: Record | None) -> Record:
        record = record or Record(release.image, release.name, release.variant)
        return replace(record, built=built, tool=__version__)

    records.update(plan.key, change)
    return built
