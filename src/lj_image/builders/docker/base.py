"""The base image in an engine: ours is made and loaded, one by reference is pulled once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import docker
import docker.auth
from docker.errors import APIError

from lj_image.builders.docker.engine import find_image, foreign, translated
from lj_image.catalog.release import Base, BootstrapRecipe, Platform
from lj_image.config import Config
from lj_image.errors import EngineError
from lj_image.oci.image_config import ImageConfig

Log = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class BaseImage:
    """A base that is in the engine."""

    reference: str
    """What FROM says: the name in the engine, after mirrors."""
    image_id: str
    digest: str
    """Its manifest's digest in the registry that it came from; for a base of ours, its image id."""
    size_bytes: int
    diff_ids: tuple[str, ...]
    """Of its layers, the lowest first: what is in it, whatever name and id an engine gives it."""


def ensure_base(api: docker.APIClient, base: Base, config: Config, platform: Platform, *, log: Log) -> BaseImage:
    """Return the base as it is in the engine, making or pulling it first if it is not there for that platform.

    Raises EngineError when it cannot be had.
    """
    if base.recipe is not None:
        return _bootstrapped(api, base.recipe, config.cache_dir, log)
    reference = config.mirrored(base.name)
    found = find_image(api, reference)
    if found is None or found.get("Architecture", platform.architecture) != platform.architecture:
        log(f"pulling the base {reference} for {platform}")
        _pull(api, reference, platform)
    return _described(api, reference)


def _bootstrapped(api: docker.APIClient, recipe: BootstrapRecipe, cache_dir: Path, log: Log) -> BaseImage:
    """Return a base of ours; its digest is its configuration's, whoever pushed it anywhere: every builder says so."""
    from lj_image.builders.bootstrap import bootstrap, diff_id, image_config, load

    rootfs = bootstrap(recipe, cache_dir, log=log)
    with translated(f"loading {recipe.name}"):
        load(api, recipe, rootfs)
    digest = ImageConfig(image_config(recipe, diff_id(rootfs))).digest
    return replace(_described(api, recipe.reference()), digest=str(digest))


def _described(api: docker.APIClient, reference: str) -> BaseImage:
    found = find_image(api, reference)
    if found is None:
        raise EngineError(f"the engine took the base {reference} but does not show it")
    digest = _digest_at(reference, found.get("RepoDigests") or ()) or found["Id"]
    return BaseImage(reference, found["Id"], digest, int(found["Size"]), tuple(found["RootFS"].get("Layers") or ()))


def _digest_at(reference: str, digests: Iterable[str]) -> str | None:
    """Return the digest that the image has at its own registry: elsewhere, another compression has another one."""
    by_name = dict(item.split("@", 1) for item in digests)
    name = reference.partition("@")[0]
    repository = name.rpartition(":")[0] if ":" in name.rpartition("/")[2] else name
    return by_name.get(repository) or next(iter(by_name.values()), None)


def _pull(api: docker.APIClient, reference: str, platform: Platform) -> None:
    """Pull, reading every line: docker-py does not raise for an error that the stream tells."""
    wanted = foreign(api, platform)
    try:
        lines = api.pull(reference, stream=True, decode=True, platform=wanted)
        refusal = next((line["error"] for line in lines if "error" in line), None)
    except APIError as error:
        refusal = str(error.explanation or error)
    if refusal:
        raise EngineError(
            f"the base {reference} cannot be pulled: {refusal}", hint=_way_out(reference, platform, refusal)
        )


def _way_out(reference: str, platform: Platform, refusal: str) -> str:
    if "no matching manifest" in refusal or "does not match the specified platform" in refusal:
        return f"it is not published for {platform}: see `architectures` of the release"
    host = reference.partition("/")[0]
    return (
        f"log in (docker login {host}), or take it from elsewhere:\n"
        f"config.yaml: mirrors: {{{host}: your-registry.example}}"
    )
