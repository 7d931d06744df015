"""A base, wherever it is -> its configuration, its layers and what its tree decides; nothing of it is unpacked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from lj_image.builders.bootstrap import bootstrap, diff_id, image_config
from lj_image.builders.oci.base_layer import BaseLayer, OciBase
from lj_image.builders.oci.base_rootfs import rootfs_layer, rootfs_tree
from lj_image.catalog.release import Base, BootstrapRecipe, Platform
from lj_image.config import Config
from lj_image.errors import BuildError
from lj_image.oci.blobs import BlobStore
from lj_image.oci.digest import Digest
from lj_image.oci.image_config import ImageConfig

__all__: Final = ["BaseLayer", "OciBase", "base_of"]

Say = Callable[[str], None]


def base_of(
    base: Base, platform: Platform, *, config: Config, blobs: BlobStore, override: str | None = None, say: Say
) -> OciBase:
    """Return the base of a release for a platform; a recipe's is made first where it is not in the cache.

    `override` names another one: a file, a folder, or a reference. Raises BuildError or ArtifactError.
    """
    if override is None and base.recipe is not None:
        found = _bootstrapped(base.recipe, config, blobs, say)
    else:
        raise BuildError(
            f"the oci builder cannot read the base {override or base.name}", hint="build with: --builder docker"
        )
    _check_platform(found, platform)
    return found


def _bootstrapped(recipe: BootstrapRecipe, config: Config, blobs: BlobStore, say: Say) -> OciBase:
    rootfs = bootstrap(recipe, config.cache_dir, log=say)
    found = diff_id(rootfs)
    digest = Digest.parse(found)
    settings = ImageConfig(image_config(recipe, found), recipe.reference())
    layer = rootfs_layer(rootfs, digest, blobs=blobs, cache_dir=config.cache_dir, say=say)
    tree = rootfs_tree(rootfs, digest, config.cache_dir)
    return OciBase(recipe.reference(), str(settings.digest), settings, (layer,), tree)


def _check_platform(base: OciBase, platform: Platform) -> None:
    found = base.config.platform
    if (found.os, found.architecture) != (platform.os, platform.architecture):
        raise BuildError(
            f"the base {base.name} is for {found}, and the release is built for {platform}",
            hint=f"name a base for {platform}, or build with: --platform {found.os}/{found.architecture}",
        )
