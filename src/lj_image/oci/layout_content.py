"""What an OCI layout holds, in a folder or a tar -> Content: documents are read, blobs opened in place.

Format: https://github.com/opencontainers/image-spec/blob/main/image-layout.md
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from lj_image.errors import ArtifactError, UsageError
from lj_image.oci.content import Blob, Content
from lj_image.oci.descent import content_below
from lj_image.oci.descriptor import Descriptor
from lj_image.oci.entries import Entries, damaged, document, entries_of
from lj_image.oci.layout import INDEX_FILE, LAYOUT_FILE, REFERENCE
from lj_image.oci.manifest import Index
from lj_image.oci.saved import CONTAINERD_NAME, DOCKER_FILE
from lj_image.oci.source import Stream
from lj_image.oci.values import Value
from lj_image.suggest import did_you_mean

_SAVED_HINT: Final = (
    "an OCI layout can be published byte for byte: skopeo copy docker-archive:{path} oci-archive:FILE makes one, "
    "or write it with lj-image export"
)


@dataclass(frozen=True, slots=True)
class LayoutEntry:
    """What a layout's index names: a manifest, or an index of several."""

    descriptor: Descriptor
    names: tuple[str, ...]
    """All that stand for it; none where the layout names nothing."""

    @property
    def shown(self) -> str:
        """Its names, or its digest where it has none."""
        return ", ".join(self.names) or str(self.descriptor.digest)


def entries_in(path: Path) -> tuple[LayoutEntry, ...]:
    """Return what a layout names, each digest once; raises UsageError for what is no layout, ArtifactError."""
    return _entries(path, entries_of(path))


def content_in(path: Path, reference: str | None = None) -> Content:
    """Read what a layout holds under a name or digest, by default the only thing in it.

    Every blob is there with its size when this returns; their digests are held against them when they are read.
    Raises UsageError for what is no layout or where several could be meant, ArtifactError for a damaged one.
    """
    entries = entries_of(path)
    chosen = _chosen(path, _entries(path, entries), reference)
    said = chosen.descriptor
    root = Descriptor(said.media_type, said.digest, said.size_bytes)  # what the layout notes of it stays in the layout
    return content_below(str(path), root, partial(_document, path, entries), partial(_blob, path, entries))


def _entries(path: Path, entries: Entries) -> tuple[LayoutEntry, ...]:
    _require_layout(path, entries)
    index = Index.parse(document(entries, INDEX_FILE, path), f"{path}: {INDEX_FILE}")
    found: dict[object, LayoutEntry] = {}
    for item in index.manifests:
        known = found.get(item.digest, LayoutEntry(item, ()))
        # What is said of it under one name holds under the others, too.
        said = replace(known.descriptor, annotations={**item.annotations, **known.descriptor.annotations})
        found[item.digest] = LayoutEntry(said, tuple(dict.fromkeys((*known.names, *_names(item)))))
    return tuple(found.values())


def _require_layout(path: Path, entries: Entries) -> None:
    if entries.size_bytes(INDEX_FILE) is None or entries.size_bytes(LAYOUT_FILE) is None:
        if entries.size_bytes(DOCKER_FILE) is not None:
            raise UsageError(
                f"{path} is what `docker save` writes: its layers have another form than in registries",
                hint=_SAVED_HINT.format(path=path),
            )
        raise UsageError(
            f"{path} is no OCI layout: it has no {LAYOUT_FILE} and {INDEX_FILE}",
            hint="name what lj-image export wrote, a folder or a tar",
        )
    version = Value.parse(document(entries, LAYOUT_FILE, path), f"{path}: {LAYOUT_FILE}")["imageLayoutVersion"]
    if not version.text().startswith("1."):
        version.fail("1.0.0")


def _names(item: Descriptor) -> Iterable[str]:
    return filter(None, (item.annotations.get(REFERENCE), item.annotations.get(CONTAINERD_NAME)))


def _chosen(path: Path, every: tuple[LayoutEntry, ...], reference: str | None) -> LayoutEntry:
    wanted = [item for item in every if reference in (None, str(item.descriptor.digest), *item.names)]
    if len(wanted) == 1:
        return wanted[0]
    if not every:
        raise UsageError(f"{path} is an empty layout", hint="write one with: lj-image export RELEASE FILE")
    known = [item.shown for item in every]
    if wanted:
        raise UsageError(f"{path} holds {len(wanted)} images: {'; '.join(known)}", hint="name one of them")
    names = [name for item in every for name in (*item.names, str(item.descriptor.digest))]
    raise UsageError(f"{path} has nothing named {reference!r}", hint=did_you_mean(str(reference), names, noun="names"))


def _document(path: Path, entries: Entries, item: Descriptor) -> bytes:
    _require_there(path, entries, item, "the document")
    return document(entries, _entry(item), path)


def _blob(path: Path, entries: Entries, item: Descriptor) -> Blob:
    _require_there(path, entries, item, "the blob")
    return Blob(item, partial(_open_at, path, entries, item))


def _open_at(path: Path, entries: Entries, item: Descriptor, offset: int) -> Stream:
    try:
        return entries.open(_entry(item), offset)
    except OSError as error:
        raise ArtifactError(
            f"the blob {item.digest} of {path} cannot be read: {error.strerror}", hint="is the medium still there?"
        ) from None


def _require_there(path: Path, entries: Entries, item: Descriptor, what: str) -> None:
    size_bytes = entries.size_bytes(_entry(item))
    if size_bytes is None:
        raise damaged(path, f"{what} {item.digest} is missing")
    if size_bytes != item.size_bytes:
        raise damaged(path, f"{what} {item.digest} has {size_bytes} bytes instead of {item.size_bytes}")


def _entry(item: Descriptor) -> str:
    return f"blobs/sha256/{item.digest.hex}"
