"""Who carries an image of a record to registries: the engine that has it, or we ourselves, straight from the cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

from lj_image.builders.oci.layer_cache import LayerCache
from lj_image.config import Config
from lj_image.errors import ArtifactError, BuildError, EngineError, PublishError, UsageError
from lj_image.oci.content import content_of
from lj_image.oci.digest import Digest
from lj_image.oci.reference import Reference
from lj_image.oci.source import SourceImage
from lj_image.registry.client import Registry
from lj_image.registry.connection import CutOff
from lj_image.release.assembled import Say, assembled_image, bring_base, engine_id, loaded_id
from lj_image.release.means import Means
from lj_image.release.outcome import Result, Wishes
from lj_image.release.record import Built
from lj_image.release.references import Target

if TYPE_CHECKING:
    import docker

    from lj_image.builders.docker.push_progress import PushProgress
    from lj_image.catalog.release import Release
    from lj_image.release.publish import Sender


class RegistrySender:
    """Publishes the image of one record straight to registries, all of them at once."""

    is_parallel = True

    def __init__(self, built: Built | None, source: ImageSource, means: Means) -> None:
        """Without a record, registries can only be asked."""
        self._built, self._source, self._means = built, source, means
        self._asked: list[Registry] = []
        """Every registry that was opened for a question; list.append and tuple() are atomic."""

    def digests(self, image_id: str) -> tuple[str, ...] | None:
        """Return the digest of the image's manifest where it is known, None when the image is gone."""
        if self._built is None or image_id != self._built.image_id:
            return None
        try:
            digest = self._source.digest()
        except ArtifactError:
            return None
        return () if digest is None else (str(digest),)

    def remote_digest(self, sent_to: str) -> str | None:
        """Return the digest under a tag at a registry, None without such a tag; raises PublishError."""
        wanted = Reference.parse(sent_to).tagged()
        with self._means.open_registry(wanted.host, intent="push") as registry:
            self._asked.append(registry)
            try:
                held = registry.head(wanted.repository, wanted.wanted)
            except CutOff:
                raise PublishError(f"{wanted.host} was cut off") from None
        return None if held is None else str(held)

    def cut_off(self) -> None:
        """End every question that is open now."""
        for registry in tuple(self._asked):
            registry.connection.cut_off()

    def push(self, image_id: str, sent_to: str, progress: PushProgress | None = None) -> str:
        """Raise PublishError: whoever has one place only names it to `push_everywhere`."""
        raise PublishError(f"{sent_to} is pushed to with all others")

    def push_everywhere(
        self, image_id: str, targets: Sequence[Target], wishes: Wishes, settled: Callable[[Result], None]
    ) -> tuple[Result, ...]:
        """Push to all targets at once, and say what became of each; raises PublishError, Interrupted."""
        if self._built is None or image_id != self._built.image_id:
            raise PublishError(f"there is no image {image_id} here", hint="build it again")
        from lj_image.release.carrying import carry  # late: where all have the image, nothing is carried

        try:
            with LayerCache(self._means.config.cache_dir).in_use():
                return carry(content_of(self._source.image()), targets, wishes, self._means, settled)
        except (ArtifactError, BuildError, EngineError) as error:
            raise PublishError(f"the image cannot be read: {error.message}", hint=error.hint) from None


class ImageSource(Protocol):
    """Where the image of a record lies."""

    def digest(self) -> Digest | None:
        """Return its manifest's digest, None where it is not known yet; raises ArtifactError when the image is gone."""

    def image(self) -> SourceImage:
        """Return it, made ready to be read; raises ArtifactError, BuildError, EngineError."""


@dataclass(frozen=True, slots=True)
class AssembledSource:
    """An image that was assembled without an engine; its base's layers may be in a registry alone."""

    built: Built
    release: Release
    config: Config
    say: Say

    def digest(self) -> Digest | None:
        """Return its manifest's digest; raises ArtifactError when the image is not in the cache any more."""
        descriptor = assembled_image(self.built, self.config).descriptor
        return descriptor.digest if descriptor else None

    def image(self) -> SourceImage:
        """Return it; a layer that only the base's registry has is opened there when it is wanted."""
        image, blobs = assembled_image(self.built, self.config), LayerCache(self.config.cache_dir).blobs
        absent = {
            layer.diff_id for layer in image.layers if layer.descriptor and not blobs.has(layer.descriptor.digest)
        }
        if not absent:
            return image
        base = _registry_of(self.config.mirrored(self.built.base.partition("@")[0]))
        if base is None:
            bring_base(self.release, self.config, self.say)
            return image
        from lj_image.release.engine_source import layer_opener

        open_there = layer_opener(base, self.config)
        return replace(
            image, layers=tuple(open_there(layer) if layer.diff_id in absent else layer for layer in image.layers)
        )


@dataclass(frozen=True, slots=True)
class EngineSource:
    """An image that an engine built, whose layers are compressed into the cache once."""

    built: Built
    release: Release
    config: Config
    say: Say
    connect: Callable[[], docker.APIClient]

    def digest(self) -> Digest | None:
        """Return its manifest's digest, None before it was ever read from the engine."""
        from lj_image.release.engine_source import known_manifest

        return known_manifest(self.built, self.config)

    def image(self) -> SourceImage:
        """Return it from the cache; the engine is asked for what is not there."""
        from lj_image.release.engine_source import engine_image

        return engine_image(self.built, self.release, None, self.config, say=self.say, connect=self.connect)


def _registry_of(base: str) -> Reference | None:
    """Return host and repository of a base; None for one that is a file."""
    try:
        return Reference.parse(base)
    except UsageError:
        return None


class LoadedSender:
    """Publishes an assembled image through an engine, which gets it no sooner than it is to be pushed."""

    is_parallel = False

    def __init__(
        self, sender: Sender, built: Built, release: Release, api: docker.APIClient, config: Config, say: Say
    ) -> None:
        self._sender, self._built, self._release = sender, built, release
        self._api, self._config, self._say = api, config, say

    def digests(self, image_id: str) -> Sequence[str] | None:
        """Return the engine's digests and that of the assembled manifest; None when neither place has the image."""
        if image_id != self._built.image_id:
            return self._sender.digests(image_id)
        loaded = loaded_id(self._built, self._api, self._config)
        if loaded is None and not self._is_in_cache():
            return None
        return (*((loaded and self._sender.digests(loaded)) or ()), str(self._built.manifest))

    def remote_digest(self, sent_to: str) -> str | None:
        """Ask through the engine."""
        return self._sender.remote_digest(sent_to)

    def push(self, image_id: str, sent_to: str, progress: PushProgress | None = None) -> str:
        """Push through the engine, which compresses layers anew unless it keeps them as they came."""
        if image_id == self._built.image_id:
            image_id = engine_id(self._built, self._release, self._api, self._config, self._say)
        return self._sender.push(image_id, sent_to, progress)

    def push_everywhere(
        self, image_id: str, targets: Sequence[Target], wishes: Wishes, settled: Callable[[Result], None]
    ) -> None:
        """Do nothing: an engine pushes to one place after the other."""

    def cut_off(self) -> None:
        """Do nothing, as the engine's own sender."""

    def _is_in_cache(self) -> bool:
        try:
            assembled_image(self._built, self._config)
        except ArtifactError:
            return False
        return True


def engine_sender(built: Built | None, release: Release, api: docker.APIClient, config: Config, say: Say) -> Sender:
    """Return what publishes the image of a record through an engine."""
    from lj_image.builders.docker.push import EngineSender

    if built is None or not built.is_assembled:
        return EngineSender(api)
    return LoadedSender(EngineSender(api), built, release, api, config, say)


def sender_for(
    built: Built | None,
    release: Release,
    means: Means,
    say: Say,
    *,
    connect: Callable[[], docker.APIClient],
    via_engine: bool = False,
) -> Sender:
    """Return what publishes the image of a record: our own client, unless an engine is asked for."""
    if via_engine:
        return engine_sender(built, release, connect(), means.config, say)
    return RegistrySender(built, source_for(built, release, means.config, say, connect), means)


def source_for(
    built: Built | None, release: Release, config: Config, say: Say, connect: Callable[[], docker.APIClient]
) -> ImageSource:
    """Return where the image of a record lies; it is connected to an engine only when one has to be asked."""
    if built is None:
        return NOWHERE
    if built.is_assembled:
        return AssembledSource(built, release, config, say)
    return EngineSource(built, release, config, say, connect)


class Nowhere:
    """There is no image."""

    def digest(self) -> Digest | None:
        """Raise ArtifactError."""
        raise ArtifactError("nothing was built yet", hint="run: lj-image build")

    def image(self) -> SourceImage:
        """Raise ArtifactError."""
        raise ArtifactError("nothing was built yet", hint="run: lj-image build")


NOWHERE: Final = Nowhere()
