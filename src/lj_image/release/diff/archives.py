"""An archive on disk -> Contents: what `docker save` writes, or an OCI layout as a folder or tar."""

from __future__ import annotations

import zlib
from pathlib import Path

from lj_image.oci.descriptor import Platform
from lj_image.oci.digest import digest_of_stream
from lj_image.oci.entries import damaged
from lj_image.oci.image_config import ImageConfig
from lj_image.oci.saved import open_image
from lj_image.oci.source import SourceLayer
from lj_image.oci.tars import NotATarError
from lj_image.release.diff.claims import Claims
from lj_image.release.diff.contents import Contents, LayerFact
from lj_image.release.diff.layered import SelfDescription, contents_of_layers, step_titles
from lj_image.release.diff.scan import LayerFiles, LayerMemory, scan_layer


def contents_of_archive(
    path: Path, cache_dir: Path, claims: Claims, *, platform: str | None = None, reference: str | None = None
) -> Contents:
    """Read an archive; `platform` and `reference` choose among several images.

    Raises ArtifactError for one that is damaged, UsageError for one that holds no such image or several.
    """
    image = open_image(path, Platform.parse(platform) if platform else None, reference)
    memory = LayerMemory(cache_dir)
    read = [_read(layer, memory, path) for layer in image.layers]
    compressed = bool(read) and all(layer.compression != "none" for layer in image.layers)
    titles = step_titles(_steps(image.settings), len(read))
    facts = (
        LayerFact(layer.diff_id, title, lying.size_bytes)
        for layer, lying, title in zip(read, image.layers, titles, strict=True)
    )
    said = _said(image.settings, str(image.image_id), path, reference, compressed=compressed)
    return contents_of_layers(said, read, facts, claims)


def _said(
    config: ImageConfig, image_id: str, path: Path, reference: str | None, *, compressed: bool
) -> SelfDescription:
    return SelfDescription(
        name=f"image {reference}" if reference else f"archive {path}",
        short=reference or path.name,
        kind="image" if reference else "archive",
        image_id=image_id,
        platform=f"{config.os}/{config.architecture}",
        labels=config.labels,
        measure="compressed" if compressed else "unpacked",
    )


def _steps(config: ImageConfig) -> tuple[str, ...]:
    """Return what made each layer, from the lowest on; nothing where the history is not kept."""
    return tuple(step.created_by for step in config.history if not step.empty_layer)


def _read(lying: SourceLayer, memory: LayerMemory, path: Path) -> LayerFiles:
    """Read a layer, or remember it; every byte is held against what the archive says that it is."""
    plain = lying.diff_id if lying.compression == "none" else None
    expected = lying.descriptor.digest if lying.descriptor else plain
    layer = memory.read(str(lying.diff_id)) if expected else None
    with lying.open() as file:
        if layer is None:
            try:
                layer = scan_layer(file)
            except (NotATarError, zlib.error) as error:
                raise damaged(path, f"a layer is no tar ({error})") from None
            memory.write(layer)
        elif digest_of_stream(file)[0] != expected:
            raise damaged(path, f"the layer {expected} has another digest")
    if layer.diff_id != str(lying.diff_id):
        raise damaged(path, f"the layer {lying.diff_id} has another content")
    return layer
