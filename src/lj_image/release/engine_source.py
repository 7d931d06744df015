"""A record's image that an engine built -> the same image in the layer cache, from where our own client publishes it.

Layers are compressed once, ever. The image gets a name in the cache's layout, `<tag>@<image id>`, so `cache gc` knows
it as it knows assembled ones, and publishing it again needs no engine.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from lj_image.builders.docker.engine import find_image
from lj_image.builders.docker.known_layers import KnownLayers
from lj_image.builders.docker.loading import keeps_blobs
from lj_image.builders.docker.saving import Wanted, saved, start_of, take_image, take_layers
from lj_image.builders.oci.layer_cache import LayerCache
from lj_image.config import Config
from lj_image.errors import ArtifactError, EngineError, Interrupted, LjImageError, UsageError
from lj_image.oci.blobs import BlobStore
from lj_image.oci.descriptor import Descriptor, Platform
from lj_image.oci.digest import Digest
from lj_image.oci.media_types import compression_of, layer_type
from lj_image.oci.reference import Reference
from lj_image.oci.source import SourceImage, SourceLayer, image_in, layer_in, with_manifest
from lj_image.release.record import Built

if TYPE_CHECKING:
    import docker

    from lj_image.catalog.release import Release

Say = Callable[[str], None]
Connect = Callable[[], "docker.APIClient"]

_BASE: Final = "io.lj-image.base"
"""The annotation of a name in the layout: the repository that has the layers which the cache lacks."""
_ASK_S: Final = 10.0
"""How long a base's registry may take to answer: without it, its layers are compressed like any others."""
_BUILD_AGAIN: Final = "build it again: lj-image build"


def known_manifest(built: Built, config: Config) -> Digest | None:
    """Return the digest of a record's manifest where it is known without an engine."""
    if built.manifest is not None:
        return Digest.parse(built.manifest)
    image = _kept(built, LayerCache(config.cache_dir), config)
    return image.descriptor.digest if image and image.descriptor else None


def engine_image(
    built: Built,
    release: Release,
    api: docker.APIClient | None,
    config: Config,
    *,
    say: Say,
    connect: Connect | None = None,
) -> SourceImage:
    """Return the image of a record that an engine built, with a manifest and with layers that lie in the cache.

    The engine is asked only for what the cache lacks, and `connect` only then. Layers of a base in a registry may be
    left there. Raises EngineError where the engine lacks the image or does not hand it out, ArtifactError for damaged
    bytes, BuildError where the cache cannot be written, Interrupted on Ctrl-C; layers that were finished are kept.
    """
    cache = LayerCache(config.cache_dir)
    try:
        with cache.in_use():
            if (kept := _kept(built, cache, config)) is not None:
                return kept
            with cache.writing(f"{Digest.parse(built.image_id).hex}-saved"):
                if (kept := _kept(built, cache, config)) is not None:  # whoever had the lock has made it
                    return kept
                return _Reading(built, release, _client(api, connect), config, cache, say).read()
    except OSError as error:
        raise cache.cannot_write(f"the image {built.tag}", error) from None


def _client(api: docker.APIClient | None, connect: Connect | None) -> docker.APIClient:
    if api is not None:
        return api
    if connect is None:
        raise EngineError("the image has to be read from the engine that built it", hint="set DOCKER_HOST to it")
    return connect()


def _kept(built: Built, cache: LayerCache, config: Config) -> SourceImage | None:
    """Return the image as it was kept, None unless every layer is in the cache or in its base's repository."""
    if not cache.folder.is_dir():
        return None
    with suppress(ArtifactError, UsageError):
        entry = cache.layout().references().get(_name(built))
        if entry is None:
            return None
        image = image_in(cache.blobs, Descriptor(entry.media_type, entry.digest, entry.size_bytes), built.tag)
        layers = _completed(image.layers, cache.blobs, entry.annotations.get(_BASE), config)
        cache.mark_used(entry.digest)
        return replace(image, layers=layers)
    return None


def _name(built: Built) -> str:
    return f"{built.tag}@{built.image_id}"


def _completed(
    layers: tuple[SourceLayer, ...], blobs: BlobStore, base: str | None, config: Config
) -> tuple[SourceLayer, ...]:
    """Return the layers, those that are not here as their base's repository has them; raises ArtifactError."""
    absent = {layer.diff_id for layer in layers if layer.descriptor and not blobs.has(layer.descriptor.digest)}
    if not absent:
        return layers
    if base is None:
        raise ArtifactError("a layer is not in the cache any more", hint=_BUILD_AGAIN)
    open_there = layer_opener(Reference.parse(base), config)
    return tuple(open_there(layer) if layer.diff_id in absent else layer for layer in layers)


def layer_opener(base: Reference, config: Config) -> Callable[[SourceLayer], SourceLayer]:
    """Return what lets a layer be opened in a repository; the registry is asked no sooner than that."""
    from lj_image.registry.configured import registry_at
    from lj_image.registry.content import blob_at

    registry = registry_at(base.host, config, intent="pull")  # kept open for the layers

    def there(layer: SourceLayer) -> SourceLayer:
        assert layer.descriptor is not None, "its manifest describes it"
        blob = blob_at(registry, base.repository, layer.descriptor)
        return replace(layer, open=partial(blob.open_at, 0), open_at=blob.open_at, origin=base.name, file=None)

    return there


@dataclass(frozen=True, slots=True)
class _Reading:
    """One image is read from an engine."""

    built: Built
    release: Release
    api: docker.APIClient
    config: Config
    cache: LayerCache
    say: Say

    def read(self) -> SourceImage:
        """Bring what is missing into the cache, and keep the image there."""
        found = find_image(self.api, self.built.image_id)
        if found is None:
            raise EngineError(f"the engine does not have the image {self.built.image_id}", hint=_BUILD_AGAIN)
        if keeps_blobs(self.api):
            return self._keep(self._as_it_lies(), None)
        return self._compressed(tuple(map(Digest.parse, found["RootFS"].get("Layers") or ())), found)

    def _as_it_lies(self) -> SourceImage:
        """Take the blobs of an engine on containerd, and the manifest byte for byte."""
        self.say(f"reading {self.built.tag} from the engine, whose blobs are taken as they are")
        wanted, platform = self.built.image_id, self.release.platform
        with saved(self.api, wanted) as stream:
            image = take_image(stream, self.cache.blobs, wanted, Platform(platform.os, platform.architecture))
        _require_same(image, wanted, self.api)
        pairs = ((layer.descriptor, layer.diff_id) for layer in image.layers)
        layers = tuple(layer_in(self.cache.blobs, item, diff_id) for item, diff_id in pairs if item is not None)
        return replace(image, name=self.built.tag, layers=layers)

    def _compressed(self, diff_ids: tuple[Digest, ...], inspected: Mapping[str, Any]) -> SourceImage:
        """Find or make a blob for each layer of an engine that keeps them unpacked."""
        known = KnownLayers(self.cache)
        found = {diff_id: blob for diff_id in diff_ids if (blob := known.find(diff_id)) is not None}
        base = self._base_of(frozenset(diff_ids) - found.keys())
        layers = {diff_id: layer_in(self.cache.blobs, blob, diff_id) for diff_id, blob in found.items()}
        layers |= base
        config = self._taken(diff_ids, layers, known, int(inspected.get("Size") or 0))
        image = SourceImage(self.built.tag, config, tuple(layers[diff_id] for diff_id in diff_ids))
        if image.settings.diff_ids != diff_ids:
            raise EngineError(f"the configuration of {self.built.image_id} names other layers", hint=_BUILD_AGAIN)
        return self._keep(with_manifest(image), next((layer.origin for layer in base.values()), None))

    def _taken(
        self, diff_ids: tuple[Digest, ...], layers: dict[Digest, SourceLayer], known: KnownLayers, size_bytes: int
    ) -> bytes:
        """Read the layers that are in none of `layers`, which then has them; return the configuration."""
        missing, number = frozenset(diff_ids) - layers.keys(), {item: at for at, item in enumerate(diff_ids, 1)}
        passed = len(diff_ids) - len(missing)
        self.say(
            f"reading {len(missing)} layers of {self.built.tag} from the engine, {passed} are known; "
            f"it saves all {size_bytes / 1024**2:,.0f} MiB, and may be silent for minutes before"
        )

        def compress(chunks: Iterable[bytes]) -> Digest:
            diff_id, blob = known.compress(chunks, number)
            layers[diff_id] = layer_in(self.cache.blobs, blob, diff_id)
            self.say(f"layer {number[diff_id]}/{len(diff_ids)} compressed: {blob.size_bytes / 1024**2:,.1f} MiB")
            return diff_id

        others = tuple(layers.values())
        wanted = Wanted(Digest.parse(self.built.image_id), missing, lambda: _starts(others))
        try:
            with saved(self.api, self.built.image_id) as stream:
                taken = take_layers(stream, wanted, compress)
            if taken.missing and taken.passed:  # one of them begins like a known layer: now by their digests alone
                with saved(self.api, self.built.image_id) as stream:
                    taken = take_layers(stream, replace(wanted, missing=taken.missing, starts=tuple), compress)
        except KeyboardInterrupt:
            left = len(set(diff_ids) - layers.keys())
            raise Interrupted(
                f"interrupted: {left} of {len(diff_ids)} layers of {self.built.tag} are still to be compressed",
                hint="run the same command again: the others are kept",
            ) from None
        if taken.missing or taken.config is None:
            lost = f"its layer {min(taken.missing)}" if taken.missing else "its configuration"
            raise EngineError(
                f"the engine saved {self.built.image_id} without {lost}",
                hint=f"was it removed meanwhile? {_BUILD_AGAIN}",
            )
        return taken.config

    def _base_of(self, unknown: frozenset[Digest]) -> dict[Digest, SourceLayer]:
        """Return those layers that the base's own registry has; none where there is no such registry, or it is mute."""
        if not unknown or self.release.base.recipe is not None:
            return {}
        try:
            layers, base = self._read_base()
        except LjImageError as error:  # a base that is only in the engine, a registry that is not reached from here
            self.say(f"the base's layers are compressed like the others: {error.message}")
            return {}
        open_there = layer_opener(base, self.config)
        found = (open_there(_as_oci(layer)) for layer in layers if layer.diff_id in unknown and layer.descriptor)
        return {layer.diff_id: layer for layer in found}

    def _read_base(self) -> tuple[tuple[SourceLayer, ...], Reference]:
        from lj_image.registry.access import Patience
        from lj_image.registry.configured import registry_at
        from lj_image.registry.image import read_image

        named, _, digest = self.built.base.rpartition("@")
        base = Reference.parse(named.partition("@")[0]).at(Digest.parse(digest))
        patience = Patience(attempts=1, connect_s=_ASK_S, idle_s=_ASK_S)
        platform = Platform(self.release.platform.os, self.release.platform.architecture)
        with registry_at(base.host, self.config, intent="pull", patience=patience) as registry:
            return read_image(registry, base, platform).layers, base

    def _keep(self, image: SourceImage, base: str | None) -> SourceImage:
        """Give the image its name in the cache, after all that it needs."""
        blobs, descriptor = self.cache.blobs, image.descriptor
        assert descriptor is not None, "it got a manifest"
        blobs.put(image.config)
        blobs.put(image.manifest or b"")
        annotations = {_BASE: base} if base else {}
        entry = Descriptor(descriptor.media_type, descriptor.digest, descriptor.size_bytes, annotations)
        self.cache.layout().set_reference(_name(self.built), entry)
        return image


def _require_same(image: SourceImage, image_id: str, api: docker.APIClient) -> None:
    """Raise EngineError where an engine saved another image than it was asked for."""
    # Its id is that of a manifest, or of an index whose manifest this is.
    own = {str(image.image_id), str(image.descriptor.digest) if image.descriptor else ""}
    found = find_image(api, image_id)
    layers = [str(layer.diff_id) for layer in image.layers]
    if image_id not in own and (found is None or found["RootFS"].get("Layers") != layers):
        raise EngineError(f"the engine saved another image than {image_id}: {image.image_id}", hint=_BUILD_AGAIN)


def _starts(layers: Iterable[SourceLayer]) -> frozenset[str]:
    """Return how the tars of known layers begin; one that cannot be read now is read from the engine, and passed on."""
    found = set()
    for layer in layers:
        with suppress(ArtifactError, OSError, zlib.error):
            found.add(start_of(layer))
    return frozenset(found)


def _as_oci(layer: SourceLayer) -> SourceLayer:
    """Return a layer as an OCI manifest describes it; the blob is the same."""
    assert layer.descriptor is not None, "it comes from a manifest"
    compression = compression_of(layer.descriptor.media_type) or layer.compression
    return replace(layer, descriptor=replace(layer.descriptor, media_type=layer_type(compression)))
