"""Tiny images as the assembler leaves them: layers, configuration and manifest among the blobs of a cache."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

from lj_image.oci.blobs import BlobStore
from lj_image.oci.descriptor import Descriptor, Platform, descriptor_of
from lj_image.oci.digest import Digest
from lj_image.oci.image_config import AddedLayer, History, ImageConfig
from lj_image.oci.layout import Layout
from lj_image.oci.manifest import Manifest
from lj_image.oci.media_types import MediaType
from lj_image.oci.source import SourceImage, image_in
from lj_image.release.record import Built

AT = "2025-02-01T00:00:00+00:00"


def tiny_image(
    cache_dir: Path,
    *files: str,
    name: str = "tiny:1",
    labels: Mapping[str, str] | None = None,
    below: SourceImage | None = None,
) -> SourceImage:
    """Put an image into a cache, with a layer for each file, and give it a name; `below` is an image to stand on."""
    layout = Layout.create(cache_dir / "oci")
    config = below.settings if below else ImageConfig.empty(Platform("linux", "amd64"))
    lower = tuple(layer.descriptor for layer in below.layers if layer.descriptor) if below else ()
    made = [_layer(layout.blobs, file) for file in files]
    config = config.with_layers(added for added, _ in made).with_labels(labels or {}).with_cmd(["/nothing"])
    layout.blobs.put(config.to_bytes())
    described = descriptor_of(config.to_bytes(), MediaType.OCI_CONFIG)
    manifest = Manifest(described, (*lower, *(item for _, item in made)))
    layout.blobs.put(manifest.to_bytes())
    layout.set_reference(name, manifest.descriptor())
    return image_in(layout.blobs, manifest.descriptor(), name)


def built_as(image: SourceImage, tag: str = "tiny:1") -> Built:
    """Return what the record of an assembled image says."""
    assert image.descriptor is not None
    return Built(
        image_id=str(image.image_id),
        tag=tag,
        inputs="i",
        plan="p",
        lock="l",
        builder="oci",
        base="base@sha256:0",
        at=AT,
        seconds=1.0,
        size_bytes=1,
        manifest=str(image.descriptor.digest),
    )


def _layer(blobs: BlobStore, file: str) -> tuple[AddedLayer, Descriptor]:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as tar:
        member = tarfile.TarInfo(file)
        member.size = len(file)
        tar.addfile(member, io.BytesIO(file.encode()))
    plain, packed = target.getvalue(), gzip.compress(target.getvalue(), mtime=0)
    step = History(f"lj-image: {file}", "2025-02-01T00:00:00Z")
    return AddedLayer(Digest.of(plain), step), Descriptor(MediaType.OCI_LAYER_GZIP, blobs.put(packed), len(packed))
