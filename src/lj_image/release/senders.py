"""Who carries an image of a record to registries: the engine that has it, or we ourselves, straight from the cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from lj_image.builders.oci.layer_cache import LayerCache
from lj_image.config import Config
from lj_image.errors import ArtifactError, BuildError, PublishError, UsageError
from lj_image.oci.digest import Digest
from lj_image.oci.reference import Reference
from lj_image.oci.source import SourceImage
from lj_image.release.assembled import Say, assembled_image, bring_base, engine_id, loaded_id
from lj_image.release.record import Built

if TYPE_CHECKING:
    import docker

    from lj_image.builders.docker.push_progress import LayerState, PushProgress
    from lj_image.catalog.release import Release
    from lj_image.registry.push import BlobState
    from lj_image.release.publish import Sender

_SHORT: Final = 12
"""Hexadecimal digits of a digest that people are shown."""


class Remote(Protocol):
    """Registries, as far as publishing asks for them."""

    def digest(self, reference: str) -> str | None:
        """Return the digest of the manifest under a tag, None without such a tag; raises PublishError."""

    def push(self, image: SourceImage, reference: str, progress: PushProgress) -> str:
        """Send what the registry lacks, the tag last, and return the manifest's digest; raises PublishError."""


class Registries:
    """Registries, each asked directly with the login of the docker config."""

    def digest(self, reference: str) -> str | None:
        """Return the digest of the manifest under a tag, None without such a tag; raises PublishError."""
        from lj_image.registry.client import Registry

        wanted = Reference.parse(reference).tagged()
        with Registry(wanted.host) as registry:
            held = registry.head(wanted.repository, wanted.wanted)
        return None if held is None else str(held)

    def push(self, image: SourceImage, reference: str, progress: PushProgress) -> str:
        """Send what the registry lacks, the tag last, and return the manifest's digest; raises PublishError."""
        from lj_image.registry.client import Registry
        from lj_image.registry.push import push_image

        wanted = Reference.parse(reference).tagged()
        with Registry(wanted.host) as registry:
            return str(push_image(registry, wanted, image, _Watcher(progress)))


class _Watcher:
    """Tells a push's progress of blobs."""

    def __init__(self, progress: PushProgress) -> None:
        self._progress = progress

    def blob(self, digest: Digest, state: BlobState, sent_bytes: int, size_bytes: int) -> None:
        from lj_image.builders.docker.push_progress import LayerPush

        shown: LayerState = "there" if state == "mounted" else state
        self._progress.layer(LayerPush(digest.hex[:_SHORT], shown, sent_bytes, size_bytes))


class RegistrySender:
    """Publishes the image of one record; its digest is known before the first byte goes out."""

    def __init__(self, built: Built | None, config: Config, remote: Remote, *, complete: Callable[[], None]) -> None:
        """Without a record, registries can only be asked.

        `complete` brings the base's layers into the cache: called when a registry lacks some, and so does it."""
        self._built, self._config, self._remote, self._complete = built, config, remote, complete

    def digests(self, image_id: str) -> tuple[str, ...] | None:
        """Return the digest of the image's manifest, None when the image is not in the cache."""
        try:
            image = self._image(image_id)
        except ArtifactError:
            return None
        return (str(image.descriptor.digest),) if image.descriptor else ()

    def remote_digest(self, sent_to: str) -> str | None:
        """Return the digest under a tag at a registry, None without such a tag; raises PublishError."""
        return self._remote.digest(sent_to)

    def push(self, image_id: str, sent_to: str, progress: PushProgress | None = None) -> str:
        """Push the image under a tag and return its manifest's digest; raises PublishError."""
        from lj_image.builders.docker.push_progress import NoProgress

        progress = progress or NoProgress()
        progress.begin(sent_to)
        try:
            with LayerCache(self._config.cache_dir).in_use():
                return self._pushed(self._image(image_id), sent_to, progress)
        except (ArtifactError, BuildError) as error:
            raise PublishError(f"the image cannot be read: {error.message}", hint=error.hint) from None
        finally:
            progress.end()

    def _pushed(self, image: SourceImage, sent_to: str, progress: PushProgress) -> str:
        try:
            return self._remote.push(image, sent_to, progress)
        except ArtifactError:  # what was sent is there, and is not sent again
            self._complete()
            return self._remote.push(image, sent_to, progress)

    def _image(self, image_id: str) -> SourceImage:
        """Return the image; its base's layers may be mounted where the base came from."""
        if self._built is None or image_id != self._built.image_id:
            raise ArtifactError(f"the cache has no image {image_id}", hint="build it again")
        image, blobs = assembled_image(self._built, self._config), LayerCache(self._config.cache_dir).blobs
        origin = _origin(self._config.mirrored(self._built.base.partition("@")[0]))
        layers = (
            layer if layer.descriptor and blobs.has(layer.descriptor.digest) else replace(layer, origin=origin)
            for layer in image.layers
        )
        return replace(image, layers=tuple(layers))


def _origin(base: str) -> str:
    """Return host and repository of a base; nothing for one that is a file."""
    try:
        return Reference.parse(base).name
    except UsageError:
        return ""


class LoadedSender:
    """Publishes an assembled image through an engine, which gets it no sooner than it is to be pushed."""

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
    config: Config,
    say: Say,
    *,
    connect: Callable[[], docker.APIClient],
    via_engine: bool = False,
    assembles: bool = False,
) -> Sender:
    """Return what publishes the image of a record: an assembled one goes out without an engine unless that is asked.

    Where nothing was built yet, `assembles` says what a build would do.
    """
    is_assembled = assembles if built is None else built.is_assembled
    if via_engine or not is_assembled:
        return engine_sender(built, release, connect(), config, say)
    return RegistrySender(built, config, Registries(), complete=lambda: bring_base(release, config, say))
