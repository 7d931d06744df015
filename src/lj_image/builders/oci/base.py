"""A base, wherever it is -> its configuration, its layers and what its tree decides; nothing of it is unpacked."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Final

from lj_image.builders.bootstrap import PATH, bootstrap, diff_id, image_config
from lj_image.builders.oci.base_image import image_base
from lj_image.builders.oci.base_layer import OciBase
from lj_image.catalog.release import Base, BootstrapRecipe, Platform
from lj_image.config import Config
from lj_image.errors import ArtifactError, BuildError
from lj_image.oci import descriptor as oci
from lj_image.oci.blobs import BlobStore
from lj_image.oci.digest import Digest
from lj_image.oci.image_config import ImageConfig
from lj_image.oci.saved import open_image
from lj_image.oci.source import SourceImage, SourceLayer

_ROOTFS_FOLDERS: Final = (("bin",), ("etc",), ("usr",))
"""A tar with one of these is a root file system."""

Say = Callable[[str], None]
Pull = Callable[[str, oci.Platform], SourceImage]
"""Reads the documents of an image in a registry."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where what is made is kept, and who is told."""

    cache_dir: Path
    blobs: BlobStore
    say: Say


def base_of(
    base: Base,
    platform: Platform,
    *,
    config: Config,
    blobs: BlobStore,
    override: str | None = None,
    say: Say,
    pull: Pull | None = None,
) -> OciBase:
    """Return the base of a release for a platform; a recipe's is made first where it is not in the cache.

    `override` names another one: an OCI layout, what `docker save` wrote, a root file system's tar, or a reference.
    Raises UsageError for what holds no image for the platform, BuildError or ArtifactError for what is damaged or
    cannot be had.
    """
    place = Place(config.cache_dir, blobs, say)
    if override is not None and _is_path(override):
        found = _in_file(Path(override).expanduser(), base.recipe, platform, place)
    elif override is None and base.recipe is not None:
        rootfs = bootstrap(base.recipe, config.cache_dir, log=say)
        found = _rootfs(base.recipe.reference(), rootfs, diff_id(rootfs), base.recipe, platform, place)
    else:
        reference = config.mirrored(override or base.name)
        image = (pull or partial(_pulled, config))(reference, oci.Platform(platform.os, platform.architecture))
        found = image_base(image, blobs=blobs, cache_dir=config.cache_dir, say=say)
    _check_platform(found, platform)
    return found


def _is_path(text: str) -> bool:
    """Tell a path from a reference, which never begins so; one that is there is one in any case."""
    return text.startswith(("/", "./", "../", "~")) or text.endswith(".tar") or Path(text).exists()


def _in_file(path: Path, recipe: BootstrapRecipe | None, platform: Platform, place: Place) -> OciBase:
    if _is_rootfs(path):
        note = place.cache_dir / "bases" / f"{hashlib.sha256(str(path.resolve()).encode()).hexdigest()}.diff-id"
        note.parent.mkdir(parents=True, exist_ok=True)
        return _rootfs(str(path), path, diff_id(path, note), recipe, platform, place)
    image = open_image(path, oci.Platform(platform.os, platform.architecture))
    return image_base(image, blobs=place.blobs, cache_dir=place.cache_dir, say=place.say)


def _is_rootfs(path: Path) -> bool:
    """Look for the folders of a root file system, as far as it takes to find one; no image has any of them."""
    if not path.is_file():
        return False
    try:
        with tarfile.open(path, "r:") as tar:
            return any(PurePosixPath(member.name).parts[:1] in _ROOTFS_FOLDERS for member in tar)
    except (tarfile.TarError, OSError):
        return False  # whoever looks for an image in it says what is wrong


def _rootfs(
    name: str, rootfs: Path, found: str, recipe: BootstrapRecipe | None, platform: Platform, place: Place
) -> OciBase:
    """Return the base that a root file system is; its configuration is the recipe's, or the plainest."""
    digest = Digest.parse(found)
    fields = _plain_config(platform, found) if recipe is None else image_config(recipe, found)
    settings = ImageConfig(fields, f"the configuration of {name}")
    layer = SourceLayer(digest, "none", rootfs.stat().st_size, lambda: rootfs.open("rb"))
    return image_base(
        SourceImage(name, settings.to_bytes(), (layer,)), blobs=place.blobs, cache_dir=place.cache_dir, say=place.say
    )


def _plain_config(platform: Platform, layer: str) -> dict[str, Any]:
    """Return what a tar does not say of itself: it is taken to be for the platform that is built."""
    return {
        "architecture": platform.architecture,
        "config": {"Cmd": ["bash"], "Env": [f"PATH={PATH}"]},
        "history": [{"created_by": "lj-image: a root file system"}],
        "os": platform.os,
        "rootfs": {"diff_ids": [layer], "type": "layers"},
    }


def _pulled(config: Config, reference: str, platform: oci.Platform) -> SourceImage:
    """Read manifest and configuration; the layers stay where they are until somebody wants them."""
    from lj_image.oci.reference import Reference
    from lj_image.registry.configured import registry_at  # late: a base that is here needs no HTTP client
    from lj_image.registry.image import read_image

    wanted = Reference.parse(reference)
    try:
        return read_image(registry_at(wanted.host, config, intent="pull"), wanted, platform)  # kept open for the layers
    except ArtifactError as error:
        raise ArtifactError(
            error.message,
            hint=f"{error.hint or ''}\nor save it where there is an engine (docker save NAME -o base.tar), "
            "and build with: --base base.tar".lstrip(),
        ) from None


def _check_platform(base: OciBase, platform: Platform) -> None:
    found = base.config.platform
    if (found.os, found.architecture) != (platform.os, platform.architecture):
        raise BuildError(
            f"the base {base.name} is for {found}, and the release is built for {platform}",
            hint=f"name a base for {platform}, or build with: --platform {found.os}/{found.architecture}",
        )
