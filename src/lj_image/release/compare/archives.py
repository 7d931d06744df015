"""An archive on disk as one side: what `docker save` writes, or an OCI layout as a folder or tar."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from lj_image.errors import ArtifactError, UsageError
from lj_image.oci.streams import BLOCK_BYTES
from lj_image.release.compare.scan import scan_layer
from lj_image.release.compare.tree import LayerTree
from lj_image.release.diff import archives

_ZSTD: Final = b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True, slots=True)
class ArchiveSide:
    """An image of an archive."""

    path: Path
    image: archives.SavedImage

    @property
    def name(self) -> str:
        """As it was named."""
        return f"archive {self.path}"

    @property
    def config(self) -> Mapping[str, Any]:
        """Its configuration."""
        return self.image.config

    @property
    def diff_ids(self) -> tuple[str, ...]:
        """Of its layers, from the lowest on."""
        return tuple(blob.diff_id for blob in self.image.blobs)

    def layers(self, wanted: frozenset[str], unknown: frozenset[str]) -> Iterator[tuple[str, LayerTree]]:
        """Yield the wanted layers; raises ArtifactError for one that is damaged, or another than it should be."""
        found = {blob.diff_id: blob for blob in self.image.blobs if blob.diff_id in wanted}
        with archives._damage_explained(self.path), archives._opened(self.path) as entries:
            for blob in found.values():
                with entries.open(blob.entry) as file:
                    yield blob.diff_id, _scanned(file, blob, self.path)


def archive_side(path: Path, platform: str | None) -> ArchiveSide:
    """Open an archive; `platform` chooses among several images.

    Raises ArtifactError for one that is damaged, UsageError for one that holds no such image or several.
    """
    with archives._damage_explained(path), archives._opened(path) as entries:
        image = archives._oci_image(entries, path, platform) or archives._docker_image(entries, path)
    if image is None:
        raise UsageError(
            f"{path} is no saved image: it has neither an index.json nor a manifest.json",
            hint="write one with: docker save NAME:TAG -o FILE",
        )
    return ArchiveSide(path, image)


def _scanned(file: BinaryIO, blob: archives.Blob, path: Path) -> LayerTree:
    if file.read(len(_ZSTD)) == _ZSTD:
        raise ArtifactError(
            f"{path}: the layer {blob.diff_id} is compressed with zstd, which lj-image does not read",
            hint="copy the image with gzip layers, or load it into an engine and save it there",
        )
    file.seek(0)
    if blob.digest is not None and _sha256(file) != blob.digest:
        raise archives._damaged(path, f"the layer {blob.digest} has another digest")
    file.seek(0)
    diff_id, tree = scan_layer(file)
    if diff_id != blob.diff_id:
        raise archives._damaged(path, f"the layer {blob.diff_id} has another content")
    return tree


def _sha256(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    while block := file.read(BLOCK_BYTES):
        digest.update(block)
    return f"sha256:{digest.hexdigest()}"
