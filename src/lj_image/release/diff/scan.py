"""One layer's tar -> what it adds and takes away, read once as it passes by, and remembered by its diff id."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, Final

from lj_image.catalog.names import normalised
from lj_image.oci.streams import BLOCK_BYTES, ChunkReader, HashingChunks, Readable, decompressed, drain
from lj_image.oci.tars import Content, Member, walk
from lj_image.release.diff.contents import FileFact
from lj_image.release.diff.licences import licence_of
from lj_image.whole import write_whole

SCANNER: Final = 1
"""Raised when a scan finds other things than before, so that remembered ones are not taken for it."""
# OCI image spec, layer.md, "Whiteouts" and "Opaque Whiteout".
_WHITEOUT: Final = ".wh."
_OPAQUE: Final = ".wh..wh..opq"
_PACKAGES: Final = ("site-packages", "dist-packages")
"""Folders that Python looks in; a dist-info elsewhere belongs to a copy that a distribution carries inside."""
_LARGEST_METADATA_BYTES: Final = 4 * BLOCK_BYTES


@dataclass(frozen=True, slots=True)
class Stated:
    """A distribution as its metadata states it."""

    name: str
    """Normalised (PEP 503)."""
    version: str
    licence: str


@dataclass(frozen=True, slots=True)
class LayerFiles:
    """What one layer does to those below."""

    diff_id: str
    size_bytes: int
    """Of its tar, uncompressed."""
    files: Mapping[str, FileFact]
    """Files and links by path, without a leading slash."""
    folders: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    """Paths that it takes away, with all below them."""
    emptied: frozenset[str] = frozenset()
    """Folders of which it takes away all that lower layers have."""
    stated: Mapping[str, Stated] = field(default_factory=dict)
    """Path of the metadata -> distribution."""


def scan_layer(content: Readable) -> LayerFiles:
    """Read a layer's tar, compressed with gzip or not; raises NotATarError or zlib.error for anything else."""
    with HashingChunks(decompressed(content)) as chunks:
        tar = ChunkReader(chunks)
        draft = _Draft()
        for member in walk(tar):
            draft.add(member)
        drain(tar)  # what follows the tar's end is part of the digest
        return draft.finished(f"sha256:{chunks.hexdigest()}", chunks.size_bytes)


@dataclass(slots=True)
class _Draft:
    """A layer while its tar passes by."""

    files: dict[str, FileFact] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    emptied: set[str] = field(default_factory=set)
    stated: dict[str, Stated] = field(default_factory=dict)

    def add(self, member: Member) -> None:
        path = _printable(member.path)
        folder, _, name = path.rpartition("/")
        if name == _OPAQUE:
            self.emptied.add(folder)
        elif name.startswith(_WHITEOUT):
            self.removed.add(f"{folder}/{name.removeprefix(_WHITEOUT)}".lstrip("/"))
        elif member.is_folder:
            self.folders.add(path)
        elif not member.is_file:
            self.files[path] = FileFact(0, f"→ {_printable(member.link)}")
        else:
            self._add_file(path, member)

    def _add_file(self, path: str, member: Member) -> None:
        size_bytes = member.content.left_bytes
        if _is_metadata(path) and size_bytes <= _LARGEST_METADATA_BYTES:
            text = _whole(member.content)
            digest = sha256(text).hexdigest()
            if (found := _stated(text.decode(errors="replace"))) is not None:
                self.stated[path] = found
        else:
            digest = _digest(member.content)
        self.files[path] = FileFact(size_bytes, digest)

    def finished(self, diff_id: str, size_bytes: int) -> LayerFiles:
        sets = (frozenset(self.folders), frozenset(self.removed), frozenset(self.emptied))
        return LayerFiles(diff_id, size_bytes, self.files, *sets, self.stated)


def _printable(path: str) -> str:
    """Return a name that any terminal and JSON can hold; Linux allows names that are no text."""
    return path.encode(errors="surrogateescape").decode(errors="backslashreplace")


def _digest(content: Content) -> str:
    digest = sha256()
    while block := content.read(BLOCK_BYTES):
        digest.update(block)
    return digest.hexdigest()


def _whole(content: Content) -> bytes:
    parts = iter(lambda: content.read(BLOCK_BYTES), b"")
    return b"".join(parts)


def _is_metadata(path: str) -> bool:
    """Say whether a path is that of an installed distribution's metadata (PEP 376, and before it egg-info)."""
    parts = PurePosixPath(path).parts
    if len(parts) > 1 and parts[-2] in _PACKAGES:
        return parts[-1].endswith(".egg-info")
    if len(parts) < 3 or parts[-3] not in _PACKAGES:
        return False
    folder, name = parts[-2:]
    return (folder.endswith(".dist-info") and name == "METADATA") or (
        folder.endswith(".egg-info") and name == "PKG-INFO"
    )


def _stated(text: str) -> Stated | None:
    from email.parser import HeaderParser

    headers = HeaderParser().parsestr(text, headersonly=True)
    name, version = headers.get("Name"), headers.get("Version")
    return Stated(normalised(str(name)), str(version), licence_of(text)) if name and version else None


def merged(layers: Iterable[LayerFiles]) -> tuple[dict[str, FileFact], dict[str, Stated]]:
    """Lay layers over each other; return the files that are seen, and the distributions among them by path."""
    files: dict[str, FileFact] = {}
    stated: dict[str, Stated] = {}
    folders: set[str] = set()
    for layer in layers:
        if hidden := frozenset(_hidden(layer, files, folders)):
            files = {path: fact for path, fact in files.items() if path not in hidden}
        files.update(layer.files)
        stated.update(layer.stated)
        folders.update(layer.folders, *(set(_above(path)) for path in layer.files))
    return files, {path: found for path, found in stated.items() if path in files}


def _hidden(layer: LayerFiles, files: Mapping[str, FileFact], folders: set[str]) -> Iterator[str]:
    """Yield the paths of lower layers that this layer hides: whited out, or of another kind now."""
    replaced = layer.removed | {path for path in layer.files if path in folders}
    if replaced or layer.emptied:
        for path in files:
            above = _above(path)
            if path in layer.removed or not replaced.isdisjoint(above) or not layer.emptied.isdisjoint(above):
                yield path
    yield from (path for path in layer.folders if path in files)
    yield from {parent for path in layer.files for parent in _above(path) if parent in files}


def _above(path: str) -> list[str]:
    """Return the folders that a path lies in.

    >>> _above("usr/lib/x")
    ['usr/lib', 'usr']
    """
    found = []
    while path := path.rpartition("/")[0]:
        found.append(path)
    return found


class LayerMemory:
    """Scanned layers on disk; a layer of gigabytes is read once."""

    def __init__(self, cache_dir: Path) -> None:
        self._folder = cache_dir / "layers"

    def read(self, diff_id: str) -> LayerFiles | None:
        """Return what is remembered; a damaged file is as good as none."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            return _from_json(json.loads(self._path(diff_id).read_text(encoding="utf-8")))
        return None

    def write(self, layer: LayerFiles) -> None:
        """Keep a layer; does without where nothing can be written."""
        with suppress(OSError):
            write_whole(self._path(layer.diff_id), json.dumps(_to_json(layer)))

    def _path(self, diff_id: str) -> Path:
        return self._folder / f"{diff_id.replace(':', '-')}-{SCANNER}.json"


def _to_json(layer: LayerFiles) -> dict[str, Any]:
    return {
        "diff_id": layer.diff_id,
        "size_bytes": layer.size_bytes,
        "files": {path: [fact.size_bytes, fact.digest] for path, fact in layer.files.items()},
        "folders": sorted(layer.folders),
        "removed": sorted(layer.removed),
        "emptied": sorted(layer.emptied),
        "stated": {path: asdict(found) for path, found in layer.stated.items()},
    }


def _from_json(kept: dict[str, Any]) -> LayerFiles:
    return LayerFiles(
        kept["diff_id"],
        int(kept["size_bytes"]),
        {path: FileFact(int(size), str(digest)) for path, (size, digest) in kept["files"].items()},
        frozenset(kept["folders"]),
        frozenset(kept["removed"]),
        frozenset(kept["emptied"]),
        {path: Stated(**found) for path, found in kept["stated"].items()},
    )
