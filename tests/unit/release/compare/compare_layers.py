"""Layers with every kind of entry, written by `tarfile`, whose fields a test sets one by one."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lj_image.release.compare.compare import Comparison, Memory, compare
from lj_image.release.compare.scan import scan_layer
from lj_image.release.compare.tree import LayerTree
from unit.release.diff.diff_archives import digest

KINDS = {
    "file": tarfile.REGTYPE,
    "folder": tarfile.DIRTYPE,
    "link": tarfile.SYMTYPE,
    "hard": tarfile.LNKTYPE,
    "device": tarfile.CHRTYPE,
    "block": tarfile.BLKTYPE,
    "fifo": tarfile.FIFOTYPE,
}
Entry = tuple[str, tarfile.TarInfo, bytes]


def entry(path: str, content: bytes = b"", kind: str = "file", mode: int | None = None, **fields: Any) -> Entry:
    """Return one entry; `fields` are those of a TarInfo, and `xattrs`."""
    found = tarfile.TarInfo(path)
    found.type, found.size = KINDS[kind], len(content)
    found.mode = mode if mode is not None else (0o755 if kind == "folder" else 0o644)
    found.pax_headers = {f"SCHILY.xattr.{name}": value for name, value in fields.pop("xattrs", {}).items()}
    for name, value in fields.items():
        setattr(found, name, value)
    return path, found, content


def layer(*entries: Entry) -> bytes:
    """Return a layer's tar."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for _, found, content in entries:
            tar.addfile(found, io.BytesIO(content) if found.isreg() else None)
    return packed.getvalue()


def files(*paths: str, content: bytes = b"1") -> bytes:
    """Return a layer of files and of their folders, which it states."""
    folders = sorted({"/".join(path.split("/")[:depth]) for path in paths for depth in range(1, path.count("/") + 1)})
    return layer(*(entry(folder, kind="folder") for folder in folders), *(entry(path, content) for path in paths))


def scanned(tar: bytes) -> LayerTree:
    """Return what a layer does."""
    return scan_layer(io.BytesIO(tar))[1]


@dataclass
class Made:
    """An image of these layers; it remembers which were read."""

    tars: tuple[bytes, ...]
    name: str = "image"
    config: Mapping[str, Any] = field(default_factory=lambda: {"os": "linux", "architecture": "amd64"})
    read: list[str] = field(default_factory=list)

    @property
    def diff_ids(self) -> tuple[str, ...]:
        """Of its layers."""
        return tuple(map(digest, self.tars))

    def layers(self, wanted: frozenset[str], unknown: frozenset[str]) -> Iterator[tuple[str, LayerTree]]:
        """Yield the wanted ones."""
        for tar in dict.fromkeys(self.tars):
            if digest(tar) in wanted:
                self.read.append(digest(tar))
                yield scan_layer(io.BytesIO(tar))


@dataclass
class Kept:
    """A memory that forgets at the end of a test."""

    known: dict[str, LayerTree] = field(default_factory=dict)

    def knows(self, diff_id: str) -> bool:
        """Say whether a layer was written."""
        return diff_id in self.known

    def read(self, diff_id: str) -> LayerTree | None:
        """Return what was written."""
        return self.known.get(diff_id)

    def write(self, diff_id: str, tree: LayerTree) -> None:
        """Keep a layer."""
        self.known[diff_id] = tree


def compared(before: tuple[bytes, ...], after: tuple[bytes, ...], memory: Memory | None = None) -> Comparison:
    """Compare two images that have these layers."""
    return compare(Made(before), Made(after), memory)


def told(found: Comparison) -> list[tuple[str, str]]:
    """Return path and aspect of every difference that counts."""
    return [(item.path, item.aspect) for item in found.differences if item.excuse is None]
