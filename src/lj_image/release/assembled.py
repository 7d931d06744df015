"""An image that was assembled without an engine: where it lies, and how an engine gets it when one is needed.

Its own id is the digest of its configuration, by which records name it. An engine may name it otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from lj_image.builders.oci.layer_cache import LayerCache
from lj_image.catalog.release import Release
from lj_image.config import Config
from lj_image.errors import ArtifactError, UsageError
from lj_image.oci.descriptor import descriptor_of
from lj_image.oci.digest import Digest
from lj_image.oci.media_types import MediaType
from lj_image.oci.saved import open_image
from lj_image.oci.source import SourceImage, image_in
from lj_image.release.record import Built

if TYPE_CHECKING:
    import docker

Say = Callable[[str], None]


def assembled_image(built: Built, config: Config) -> SourceImage:
    """Return the image of a record as it lies in the cache; raises ArtifactError when it is not there any more."""
    cache = LayerCache(config.cache_dir)
    blobs, digest = cache.blobs, Digest.parse(built.manifest or "")
    if not blobs.has(digest):
        raise ArtifactError(f"the image {built.tag} is not in the cache any more", hint="build it again")
    cache.mark_used(digest)
    return image_in(blobs, descriptor_of(blobs.read(digest), MediaType.OCI_MANIFEST), built.tag)


def loaded_id(built: Built, api: docker.APIClient, config: Config) -> str | None:
    """Return the id of a record's image in an engine, None where the engine lacks it."""
    from lj_image.builders.docker.engine import find_image  # late: who has no engine needs no docker-py
    from lj_image.builders.docker.loading import find_loaded

    try:
        image = assembled_image(built, config)
    except ArtifactError:  # an engine may have it longer than the cache
        found = find_image(api, built.image_id)
        return str(found["Id"]) if found else None
    return find_loaded(api, image, (built.image_id, str(built.manifest), built.tag))


def engine_id(built: Built, release: Release, api: docker.APIClient, config: Config, say: Say) -> str:
    """Return the id of a record's image in an engine; one that was assembled is loaded unless it is there.

    Raises EngineError, and ArtifactError when neither the engine nor the cache has it.
    """
    from lj_image.builders.docker.loading import load_image

    if not built.is_assembled:
        return built.image_id
    if (there := loaded_id(built, api, config)) is not None:
        return there
    image = assembled_image(built, config)
    with LayerCache(config.cache_dir).in_use():
        return load_image(api, image, built.tag, say=say, complete=lambda: bring_base(release, config, say))


def bring_base(release: Release, config: Config, say: Say) -> None:
    """Copy the layers of a release's base into the cache, where they are only when an image is to be whole there."""
    from lj_image.builders.oci.base import base_of

    blobs = LayerCache(config.cache_dir).blobs
    for layer in base_of(release.base, release.platform, config=config, blobs=blobs, say=say).layers:
        layer.copy(blobs)


def identity(
    built: Built | None, image_id: str, release: Release, api: docker.APIClient, config: Config, say: Say
) -> tuple[str, str]:
    """Return an image's own id, as records have it, and the engine's; `image_id` is either of them.

    The two differ for an assembled image where the engine keeps images by their manifests.
    """
    from lj_image.builders.docker.loading import find_loaded

    if built is None or not built.is_assembled:
        return image_id, image_id
    if image_id == built.image_id:
        return image_id, engine_id(built, release, api, config, say)
    try:
        found = find_loaded(api, assembled_image(built, config), (image_id,))
    except ArtifactError:
        found = None
    return (built.image_id if found else image_id), image_id


def load_named(reference: str, api: docker.APIClient, config: Config, say: Say) -> str | None:
    """Load the image that a reference names in the cache, and return the engine's id; None where there is none."""
    from lj_image.builders.docker.loading import load_image

    image = cached_image(reference, config)
    return load_image(api, image, reference, say=say) if image else None


def cached_image(reference: str, config: Config) -> SourceImage | None:
    """Return the image that a reference names in the cache, None where it names none."""
    folder = cached_layout(reference, config)
    return open_image(folder, reference=reference) if folder else None


def cached_layout(reference: str, config: Config) -> Path | None:
    """Return the layout of the cache where it has an image of this name."""
    cache = LayerCache(config.cache_dir)
    if not cache.folder.is_dir():
        return None
    try:
        return cache.folder if reference in cache.layout().references() else None
    except UsageError:  # other things lie there
        return None
