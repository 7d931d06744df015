"""An image in files -> the same image in an engine, sent as `docker load` reads it, and only what the engine lacks.

An engine that keeps layers itself takes a saved image without the layers that it has, as long as each stands on the
same ones there (moby, image/tarexport/load.go: a chain that is known is not read). One on containerd wants all blobs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import docker

from lj_image.builders.docker.engine import find_image, translated
from lj_image.errors import ArtifactError, EngineError
from lj_image.oci.archive import archive
from lj_image.oci.reference import Reference
from lj_image.oci.source import SourceImage, SourceLayer
from lj_image.verify.engine import patient

_COMPARED: Final = ("Env", "Labels", "Entrypoint", "Cmd", "WorkingDir", "User")
"""Of a configuration: what every kind of image store shows as it was given."""
_FIRST_WITH_ZSTD: Final = (1, 42)
"""The API of Engine 23.0; 20.10 neither loads nor pulls such layers."""
Say = Callable[[str], None]


def load_image(
    api: docker.APIClient,
    image: SourceImage,
    reference: str,
    *,
    say: Say,
    complete: Callable[[], None] = lambda: None,
) -> str:
    """Return the id by which the engine names an image, which has the reference there afterwards.

    It is sent unless it is there. `complete` is called when layers that are to be sent are missing, which may lie
    where the base came from. Raises EngineError for what the engine refuses, ArtifactError for a layer that is nowhere.
    """
    if (known := find_loaded(api, image, (reference,))) is not None:
        return known
    _require_readable(api, image)
    has = frozenset[int]() if keeps_blobs(api) else _known_layers(api, image)
    try:
        _send(api, image, reference, has, say, complete)
    except EngineError:
        if not has:
            raise
        _send(api, image, reference, frozenset(), say, complete)  # somebody removed what it stood on
    if (loaded := find_loaded(api, image, (reference,))) is None:
        raise EngineError(f"the engine took {reference} but does not show it", hint="look into the engine's log")
    return loaded


def find_loaded(api: docker.APIClient, image: SourceImage, names: Iterable[str]) -> str | None:
    """Return the engine's id of an image under one of some names or ids, None where it has another one, or none.

    Ids do not tell: an engine on containerd names images by a manifest, which may be one that it has made itself.
    """
    for name in names:
        found = find_image(api, name)
        if found is not None and _is_same(found, image):
            return str(found["Id"])
    return None


def _is_same(found: Mapping[str, Any], image: SourceImage) -> bool:
    if found["Id"] == str(image.image_id):
        return True
    config = json.loads(image.config)
    ours, theirs = config.get("config") or {}, found.get("Config") or {}
    return bool(
        found["RootFS"].get("Layers") == config["rootfs"]["diff_ids"]
        and all((ours.get(key) or None) == (theirs.get(key) or None) for key in _COMPARED)
    )


def _require_readable(api: docker.APIClient, image: SourceImage) -> None:
    """Raise EngineError, before gigabytes are sent, for layers of which an old engine only says `unexpected EOF`."""
    if all(layer.compression != "zstd" for layer in image.layers):
        return
    if tuple(map(int, str(api.api_version).split("."))) < _FIRST_WITH_ZSTD:
        raise EngineError(
            "the engine is older than 23.0, and reads no layers in zstd",
            hint="build without --compression zstd, or set DOCKER_HOST to a newer engine",
        )


def keeps_blobs(api: docker.APIClient) -> bool:
    """Say whether the engine's image store is containerd's."""
    with translated():
        status = dict(api.info().get("DriverStatus") or ())
    return str(status.get("driver-type", "")).startswith("io.containerd.snapshotter")


def _known_layers(api: docker.APIClient, image: SourceImage) -> frozenset[int]:
    """Return which layers the engine has: as many of the lowest ones as any image of it shares."""
    ours = [str(layer.diff_id) for layer in image.layers]
    most = 0
    with translated("looking for layers that the engine has"):
        for item in api.images():
            theirs = _layers_of(api, item["Id"])
            same = next((at for at, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]), None)
            most = max(most, min(len(ours), len(theirs)) if same is None else same)
    return frozenset(range(most))


def _layers_of(api: docker.APIClient, image_id: str) -> list[str]:
    found = find_image(api, image_id)  # it may have been removed since it was listed
    return list(found["RootFS"].get("Layers") or ()) if found else []


def _send(
    api: docker.APIClient,
    image: SourceImage,
    reference: str,
    has: frozenset[int],
    say: Say,
    complete: Callable[[], None],
) -> None:
    wanted = [layer for at, layer in enumerate(image.layers) if at not in has]
    _require(wanted, complete)
    size_mib = sum(layer.size_bytes for layer in wanted) / 1024**2
    there = f"; it has the other {len(has)}" if has else ""
    say(f"loading {reference} into the engine: {len(wanted)} layers, {size_mib:,.1f} MiB{there}")
    stream = archive(image, (Reference.parse(reference),), left_out=has)
    with translated(f"loading {reference}"), patient(api):
        messages = api.load_image(stream)  # type: ignore[no-untyped-call]
        errors = [error for message in messages if (error := _error_in(message))]
    if errors:
        raise EngineError(f"the engine refuses {reference}: {'; '.join(dict.fromkeys(errors))}")


def _require(layers: Iterable[SourceLayer], complete: Callable[[], None]) -> None:
    """Raise ArtifactError unless every layer can be opened, if need be after `complete`: before a byte is sent."""
    try:
        _open_each(layers)
    except ArtifactError:
        complete()
        _open_each(layers)


def _open_each(layers: Iterable[SourceLayer]) -> None:
    for layer in layers:
        layer.open().close()


def _error_in(message: Mapping[str, Any]) -> str | None:
    """Return the error that a message of the stream tells: docker-py raises none."""
    detail = message.get("errorDetail")
    words = detail.get("message") if isinstance(detail, Mapping) else None
    return str(words or message["error"]) if words or message.get("error") else None
