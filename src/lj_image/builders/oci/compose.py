"""Entries of several sources -> the entries of one layer, which may stand on a base.

A layer is not a folder: what is written twice, what is named like a whiteout, and what would replace a link of the base
by a folder is found here, where pip would meet a file system that settles it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from lj_image.builders.oci.entries import Entry, File, Folder, HardLink, Symlink, Written, ZipMember
from lj_image.errors import BuildError

WHITEOUT: Final = ".wh."
"""How the name begins of what deletes a file of the layers below (OCI image spec, layer.md, "Whiteouts")."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What a layer stands on, and what was decided for it."""

    folder_links: Mapping[str, str] = field(default_factory=dict)
    """Path of each link of the base that leads to a folder -> where to."""
    folders: Mapping[str, Folder] = field(default_factory=dict)
    """Folders of the base that have another mode or owner than ours would get."""
    winners: Mapping[str, str] = field(default_factory=dict)
    """Path -> the owner whose file stays."""
    epoch: int | None = None
    """No time is later."""


class Composition:
    """The entries of one layer, checked and in order; parents come before what is in them."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._folders: dict[str, Folder] = {}
        self._parents: dict[str, str] = {"": ""}
        """Folder as an entry names it -> the folder that it is in the image."""
        self._seen: dict[str, Entry] = {}
        self.newest = 0
        """The latest time of an entry, before it was clamped."""

    def entries(self, sources: Iterable[Iterable[Entry]]) -> Iterator[Entry]:
        """Yield the layer's entries; raises BuildError for what no layer can or may hold."""
        for source in sources:
            for entry in source:
                yield from self._placed(entry)

    def _placed(self, entry: Entry) -> Iterator[Entry]:
        folder, _, name = entry.path.rpartition("/")
        if (parent := self._parents.get(folder)) is None:
            _require_safe(folder, entry)
            parent = self._parents[folder] = self._resolved(folder)
        if not name or name.startswith(WHITEOUT) or name in (".", ".."):
            _require_safe(entry.path, entry)
        path = f"{parent}/{name}" if parent else name
        if (winner := self._ground.winners.get(path)) is not None and winner != entry.owner:
            return
        if path != entry.path:
            entry = replace(entry, path=path)
        if isinstance(entry, HardLink):
            above, _, last = entry.target.rpartition("/")
            entry = replace(entry, target=f"{self._resolved(above)}/{last}".lstrip("/"))
        if isinstance(entry, Folder):
            yield from self._folder(entry)
        elif not self._is_known(path, entry):
            yield from self._above(parent)
            yield self._clamped(entry)

    def _resolved(self, folder: str) -> str:
        """Return where a folder is in the image: links of the base that lead to folders are followed."""
        path = ""
        for name in folder.split("/"):
            path = f"{path}/{name}" if path else name
            path = self._ground.folder_links.get(path, path)
        return path

    def _is_known(self, path: str, entry: Entry) -> bool:
        """Say whether the very same is there already; raises BuildError when another one is."""
        before = self._seen.get(path)
        if before is None:
            if path in self._folders or path in self._ground.folder_links:
                raise BuildError(
                    f"{entry.owner}: {path} would replace a folder",
                    hint="a folder of the base or of another file of this layer has that name: leave one of them out",
                )
            self._seen[path] = entry
            return False
        if identity(before) is not None and identity(before) == identity(entry):
            return True
        raise clash(path, before.owner, entry.owner)

    def _folder(self, entry: Folder) -> Iterator[Entry]:
        path = self._ground.folder_links.get(entry.path, entry.path)
        if (before := self._folders.get(path)) is not None:
            if before.mode != entry.mode and path not in self._ground.folders:
                raise BuildError(
                    f"{entry.owner}: the folder {path} has the mode {entry.mode:o}, and {before.mode:o} elsewhere",
                    hint="give it one mode in the archive, and name it before what is in it",
                )
            return
        if path in self._seen:
            raise BuildError(f"{entry.owner}: the folder {path} would replace a file of {self._seen[path].owner}")
        yield from self._above(path.rpartition("/")[0])
        self._folders[path] = folder = self._ground.folders.get(path, replace(entry, path=path))
        yield self._clamped(folder)

    def _above(self, folder: str) -> Iterator[Entry]:
        """Yield the folders that lead there, of which nothing was written yet."""
        if not folder or folder in self._folders:
            return
        if folder in self._seen:
            raise BuildError(
                f"{self._seen[folder].owner}: {folder} is a file, and a folder for something else",
                hint="one of the two has to be left out",
            )
        yield from self._above(folder.rpartition("/")[0])
        self._folders[folder] = found = self._ground.folders.get(folder, Folder(folder))
        yield self._clamped(found)

    def _clamped(self, entry: Entry) -> Entry:
        if entry.mtime > self.newest:
            self.newest = entry.mtime
        epoch = self._ground.epoch
        return entry if epoch is None or entry.mtime <= epoch else replace(entry, mtime=epoch)


def identity(entry: Entry) -> object:
    """Return what two entries of one path must have in common to be one; None where that cannot be known."""
    match entry:
        case File(content=ZipMember() as member):
            return entry.mode, member.size_bytes, member.crc32, member.sha256
        case File(content=Written(content)):
            return entry.mode, content
        case File():  # streamed, and gone when the next one comes
            return None
        case Symlink() | HardLink():
            return type(entry), entry.target
        case Folder():
            return entry.mode


def fingerprint(entry: Entry) -> str:
    """Return in a few characters what tells an entry's content from another one's of the same path.

    A CRC with the size is what a zip knows of its members: enough to find by chance what differs, in no time.
    """
    match entry:
        case File(content=ZipMember() as member):
            return f"{member.crc32:08x}{member.size_bytes:x}"
        case File(content=Written(content)):
            return f"{zlib.crc32(content):08x}{len(content):x}"
        case File():
            return f"streamed from {entry.owner}".replace(" ", "_")
        case Symlink() | HardLink():
            return f"link:{entry.target}".replace(" ", "_")
        case Folder():
            return "folder"


def clash(path: str, first: str, second: str) -> BuildError:
    """Return the error for two owners of one path with different contents."""
    return BuildError(
        f"{first} and {second} both bring {path}, with different contents",
        hint=f"say in image.yaml whose stays: owners: {{/{path}: NAME}}, or leave one of the two out",
    )


def _require_safe(path: str, entry: Entry) -> None:
    """Raise BuildError unless every part of a path is a plain name."""
    for part in path.split("/"):
        if part in ("", ".", "..") or "\0" in part:
            raise BuildError(f"{entry.owner}: {entry.path!r} is no place inside the image")
        if part.startswith(WHITEOUT):
            raise BuildError(
                f"{entry.owner}: {entry.path} would delete {path.replace(WHITEOUT, '', 1)} in a layer",
                hint="names that begin with .wh. mean that in every image; the file needs another name",
            )
