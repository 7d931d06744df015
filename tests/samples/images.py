"""Small images, whose layers are made by tarfile and gzip, so that what is expected comes from there."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

from lj_image.oci.blobs import BlobStore
from lj_image.oci.descriptor import Descriptor, Platform
from lj_image.oci.digest import Digest
from lj_image.oci.image_config import AddedLayer, History, ImageConfig
from lj_image.oci.media_types import MediaType
from lj_image.oci.source import SourceImage, image_of, layer_in

AMD64 = Platform("linux", "amd64")
ARM64 = Platform("linux", "arm64")


def tar_of(files: Mapping[str, bytes]) -> bytes:
    """Return a tar of files."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def gzipped(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def gzipped_in_parts(content: bytes) -> bytes:
    """Return gzip of many members, as layers have that are put together from wheels."""
    return b"".join(gzipped(content[at : at + 5_000]) for at in range(0, len(content), 5_000))


LAYERS = (
    tar_of({"etc/os": b"Debian\n", "hello": b"hello from a layer\n"}),
    tar_of({"opt/big": bytes(range(256)) * 9_000}),
)


def layers_of(unique: str) -> tuple[bytes, ...]:
    """Return layers that no other test's image has."""
    return tar_of({"etc/unique": unique.encode()}), LAYERS[1]


def image(
    folder: Path,
    layers: tuple[bytes, ...] = LAYERS,
    *,
    compress: Callable[[bytes], bytes] = gzipped,
    media_type: str = MediaType.OCI_LAYER_GZIP,
    platform: Platform = AMD64,
    cmd: tuple[str, ...] = ("/bin/true",),
) -> SourceImage:
    """Return an image whose blobs lie in a folder."""
    blobs = BlobStore(folder)
    config = ImageConfig.empty(platform).with_env({"A": "b"}).with_cmd(cmd).with_created("2025-02-28T00:00:00Z")
    lying = []
    for number, layer in enumerate(layers):
        content = compress(layer)
        diff_id = Digest(sha256(layer))
        lying.append(layer_in(blobs, Descriptor(media_type, blobs.put(content), len(content)), diff_id))
        config = config.with_layers([AddedLayer(diff_id, History(f"step {number}", "2025-02-28T00:00:00Z"))])
    return image_of("a test's image", config, lying)
