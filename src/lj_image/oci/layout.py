"""An OCI image layout: a folder with blobs and an index of what is in it.

Format: https://github.com/opencontainers/image-spec/blob/main/image-layout.md
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self

from lj_image.errors import ArtifactError, Location, UsageError
from lj_image.oci.blobs import BlobStore
from lj_image.oci.descriptor import Descriptor
from lj_image.oci.digest import digest_of_stream
from lj_image.oci.manifest import Index, Manifest
from lj_image.oci.media_types import INDEXES, MANIFESTS
from lj_image.oci.values import Value, canonical
from lj_image.whole import write_whole

LAYOUT_FILE: Final = "oci-layout"
INDEX_FILE: Final = "index.json"
LAYOUT_MARK: Final = canonical({"imageLayoutVersion": "1.0.0"})
REFERENCE: Final = "org.opencontainers.image.ref.name"
_FILE_MODE: Final = 0o644
# annotations.md, "Pre-Defined Annotation Keys", the grammar of ref.name.
_NAME: Final = re.compile(
    r"[A-Za-z0-9]+(?:(?:[-._:@+]|--)[A-Za-z0-9]+)*(?:/[A-Za-z0-9]+(?:(?:[-._:@+]|--)[A-Za-z0-9]+)*)*"
)


@dataclass(frozen=True, slots=True)
class Layout:
    """A layout that is there; made by `create` or `open`."""

    folder: Path

    @classmethod
    def create(cls, folder: Path, *, among_others: bool = False) -> Self:
        """Make an empty layout, or take the one that is there; raises UsageError for a folder of something else.

        `among_others` says that the folder is ours, whatever else lies in it.
        """
        if not (folder / LAYOUT_FILE).exists():
            if not among_others and folder.exists() and any(folder.iterdir()):
                raise UsageError(
                    f"{folder} holds other things than an OCI layout", hint="name a new or an empty folder"
                )
            if not (folder / INDEX_FILE).exists():  # whoever makes it at the same time may have named an image already
                write_whole(folder / INDEX_FILE, Index().to_bytes(), mode=_FILE_MODE)
            write_whole(folder / LAYOUT_FILE, LAYOUT_MARK, mode=_FILE_MODE)
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open a layout; raises UsageError for what is none, ArtifactError for one of a version that is unknown."""
        mark = folder / LAYOUT_FILE
        if not mark.is_file():
            raise UsageError(f"{folder} is no OCI layout: it has no file {LAYOUT_FILE}")
        value = Value.parse(mark.read_bytes(), str(mark))["imageLayoutVersion"]
        if not value.text().startswith("1."):
            value.fail("1.0.0")
        return cls(folder)

    @property
    def blobs(self) -> BlobStore:
        """Its blobs."""
        return BlobStore(self.folder)

    def index(self) -> Index:
        """Read its index; raises ArtifactError."""
        path = self.folder / INDEX_FILE
        try:
            return Index.parse(path.read_bytes(), str(path))
        except FileNotFoundError:
            raise ArtifactError(f"{self.folder} is damaged: {INDEX_FILE} is missing") from None

    def references(self) -> Mapping[str, Descriptor]:
        """Return what each name stands for."""
        named = ((item.annotations.get(REFERENCE), item) for item in self.index().manifests)
        return {name: item for name, item in named if name is not None}

    def set_reference(self, name: str, target: Descriptor) -> None:
        """Let a name stand for a manifest or index among its blobs, whatever it stood for; others may do so meanwhile.

        Raises UsageError for a name that the format does not allow, ArtifactError where the blob is missing.
        """
        if not _NAME.fullmatch(name):
            raise UsageError(f"{name!r} cannot name an image in a layout", hint="use a tag, such as 25.02")
        self.blobs.size_bytes(target.digest)
        entry = replace(target, annotations={**target.annotations, REFERENCE: name})
        with _locked(self.folder):
            index = self.index()
            write_whole(self.folder / INDEX_FILE, _with(index, entry).to_bytes(), mode=_FILE_MODE)

    def drop_references(self, names: Iterable[str]) -> None:
        """Let names stand for nothing any more; blobs stay, and names that are unknown are no error."""
        gone = frozenset(names)
        with _locked(self.folder):
            index = self.index()
            kept = tuple(item for item in index.manifests if item.annotations.get(REFERENCE) not in gone)
            if kept != index.manifests:
                write_whole(self.folder / INDEX_FILE, replace(index, manifests=kept).to_bytes(), mode=_FILE_MODE)

    def validate(self) -> None:
        """Read every blob that is referenced; raises ArtifactError for the first that is missing or another."""
        seen: set[Descriptor] = set()
        for item in self.index().manifests:
            self._validate(item, seen)

    def _validate(self, item: Descriptor, seen: set[Descriptor]) -> None:
        if item in seen:
            return
        seen.add(item)
        self._compare(item)
        for part in self._parts(item):
            self._validate(part, seen)

    def _parts(self, item: Descriptor) -> tuple[Descriptor, ...]:
        if item.media_type in INDEXES:
            return Index.parse(self.blobs.read(item.digest), f"the index {item.digest}").manifests
        if item.media_type in MANIFESTS:
            manifest = Manifest.parse(self.blobs.read(item.digest), f"the manifest {item.digest}")
            return (manifest.config, *manifest.layers)
        return ()

    def _compare(self, item: Descriptor) -> None:
        with self.blobs.open(item.digest) as file:
            digest, size_bytes = digest_of_stream(file)
        if digest != item.digest or size_bytes != item.size_bytes:
            what = "digest" if digest != item.digest else f"size: {size_bytes} bytes instead of {item.size_bytes}"
            raise ArtifactError(
                f"the blob {item.digest} has another {what}",
                hint="the folder is damaged: write it anew",
                location=Location(str(self.blobs.path(item.digest))),
            )


def _with(index: Index, entry: Descriptor) -> Index:
    """Return the index with an entry in place of those of its name, and of the nameless one of its digest."""
    name = entry.annotations[REFERENCE]
    kept = [
        item
        for item in index.manifests
        if item.annotations.get(REFERENCE, name if item.digest == entry.digest else None) != name
    ]
    # Sorted, so that the order in which names were given leaves no trace.
    every = sorted([*kept, entry], key=lambda item: (item.annotations.get(REFERENCE, ""), item.digest))
    return replace(index, manifests=tuple(every))


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Wait for the folder's own lock, so that no lock file is left in what people copy."""
    number = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)
