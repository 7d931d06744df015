"""A tar -> entries, as `tar -xf … --no-same-owner --strip-components=N` leaves them when root runs it.

As root, tar keeps modes whole (-p is root's default), set-uid bits with them, and so do we: a vendor's sandbox helper
would not work otherwise. A leading `/` is taken off, as tar does. Where tar would go on after an error, write through a
link that leads out, or let a later member replace an earlier one, the archive is refused instead.
"""

from __future__ import annotations

import hashlib
import posixpath
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lj_image.builders.oci.decompression import FAULTS, TOO_LARGE, TooLargeError, TranslatedReader, decompressed_file
from lj_image.builders.oci.entries import (
    EARLIEST_TIME,
    Entry,
    File,
    Folder,
    HardLink,
    Readable,
    Streamed,
    Symlink,
)
from lj_image.catalog.release import ArchiveSource
from lj_image.errors import BuildError
from lj_image.oci.streams import BLOCK_BYTES, drain
from lj_image.oci.tars import Member, NotATarError, walk

_WHITEOUT: Final = ".wh."
_HARD_LINK: Final = b"1"
_SYMLINK: Final = b"2"
_VOLUME_LABEL: Final = b"V"
_GNU_SPARSE: Final = b"S"
_KINDS: Final = {b"3": "a device", b"4": "a device", b"6": "a pipe"}
_LATEST_TIME: Final = 0o77777777777
"""The last time that a header's eleven octal digits hold."""
_MOST_HOPS: Final = 40
_HINT: Final = "build with --builder docker, or let the archive be made anew without it"


@dataclass(frozen=True, slots=True)
class _Placed:
    """A file that was seen; all names of it share one."""

    number: int
    """The how manieth member of the archive its content is."""
    mode: int
    mtime: int
    size_bytes: int


def tar_entries(path: Path, source: ArchiveSource) -> Iterator[Entry]:
    """Yield the entries of a tar, plain or compressed; raises BuildError."""
    unpacking = _Unpacking(path, source)
    try:
        with decompressed_file(path) as tar:
            is_empty = True
            for number, member in enumerate(walk(tar)):
                is_empty = False
                yield from unpacking.entries(number, member)
            drain(tar)  # a compressed stream's own checksum stands at its end
    except (NotATarError, *FAULTS) as error:
        raise unpacking.translated(error) from None
    if is_empty:
        raise BuildError(f"{source.file}: holds nothing", hint="see the component's file and its sha256")


class _Unpacking:
    """What was unpacked until now, and what a next member may do to it."""

    def __init__(self, path: Path, source: ArchiveSource) -> None:
        self._path = path
        self._source = source
        self._target = source.path.strip("/")
        self._placed: dict[str, _Placed | str | int] = {}
        """Path below the target -> a file, a link's target, or a folder's mode."""
        self._folders: set[str] = set()
        """Those that stand in the archive, and those that paths imply."""
        self._real_folders: dict[str, str] = {}
        self._has_links = False
        self._last = ""

    def translated(self, error: Exception) -> BuildError:
        """Return the error for an archive that cannot be read on."""
        if isinstance(error, TooLargeError):
            return BuildError(f"{self._source.file}: {TOO_LARGE}", hint=_HINT)
        after = f", at {self._last!r}" if self._last else ""
        return BuildError(
            f"{self._source.file}: cannot be read as a tar{after}: {error or 'it ends too early'}",
            hint="the file is not what its name says, or was damaged before it was locked",
        )

    def entries(self, number: int, member: Member) -> Iterator[Entry]:
        """Yield what a member becomes: nothing where it is stripped away or there already."""
        self._last = member.name
        if member.type == _VOLUME_LABEL:
            return
        self._require_known(member)
        below = self._below(member, member.name)
        if below is None:
            return
        path = self._real(member, below)
        if member.is_folder or (member.is_file and member.name.endswith("/")):  # so tars before POSIX have folders
            yield from self._folder(member, path)
        elif posixpath.basename(member.name.rstrip("/")) == ".":
            raise self._refusal(member, "its name is that of a folder")
        elif member.type == _SYMLINK:
            yield from self._symlink(member, path, member.link)
        elif member.type == _HARD_LINK:
            yield from self._hard_link(member, path)
        else:
            yield from self._file(number, member, path)

    def _folder(self, member: Member, path: str) -> Iterator[Entry]:
        place = self._in_image(path)
        if self._is_new(member, path, member.mode) and place:  # the root stays as it is
            yield Folder(place, member.mode, _time(member.mtime), self._source.file)

    def _symlink(self, member: Member, path: str, target: str) -> Iterator[Entry]:
        if self._is_new(member, path, target):
            self._has_links = True
            self._real_folders.clear()
            yield Symlink(self._in_image(path), target, _time(member.mtime), self._source.file)

    def _hard_link(self, member: Member, path: str) -> Iterator[Entry]:
        below = self._below(member, member.link)
        first = None if below is None else self._real(member, below)
        found = None if first is None else self._placed.get(first)
        if first == path and isinstance(found, (_Placed, str)):
            return  # it is that file already
        match found:
            case str():  # link(2) of a symbolic link makes another one
                yield from self._symlink(member, path, found)
            case _Placed():
                if self._is_new(member, path, found):
                    place, target = self._in_image(path), self._in_image(first or "")
                    yield HardLink(place, target, found.mode, _time(found.mtime), self._source.file)
            case _:
                raise self._refusal(
                    member, f"a hard link to {member.link!r}, which does not stand before it where it unpacks to"
                )

    def _file(self, number: int, member: Member, path: str) -> Iterator[Entry]:
        size_bytes = member.content.left_bytes
        found = _Placed(number, member.mode, member.mtime, size_bytes)
        if self._is_new(member, path, found):
            content = Streamed(size_bytes, TranslatedReader(member.content, self.translated))
            yield File(self._in_image(path), member.mode, _time(member.mtime), content, self._source.file)

    def _require_known(self, member: Member) -> None:
        if member.type == _GNU_SPARSE or any(key.startswith("GNU.sparse.") for key in member.pax):
            raise self._refusal(member, "a sparse file")
        if not (member.is_file or member.is_folder or member.type in (_HARD_LINK, _SYMLINK)):
            raise self._refusal(member, _KINDS.get(member.type, f"of the unknown type {member.type!r}"))

    def _below(self, member: Member, name: str) -> str | None:
        """Return where a name is below the target, empty for itself; None where it is stripped away."""
        parts = [part for part in name.split("/") if part]
        if ".." in parts:
            raise self._refusal(member, "its path leads out of the place where it is to be unpacked")
        # tar counts a leading `.` as a component, and takes away nothing where all would be.
        kept = parts[self._source.strip_components :]
        if not kept:
            return None
        kept = [part for part in kept if part != "."]
        if any(part.startswith(_WHITEOUT) for part in kept):
            raise self._refusal(member, "a name that deletes files in a layer")
        return "/".join(kept)

    def _real(self, member: Member, path: str) -> str:
        """Return where a path is when links of the archive are followed; they may not lead out of the target."""
        folder, _, name = path.rpartition("/")
        if not self._has_links or not folder:
            return path
        if (real := self._real_folders.get(folder)) is None:
            real = self._real_folders[folder] = self._followed(member, folder)
        return posixpath.join(real, name)

    def _followed(self, member: Member, folder: str) -> str:
        """Follow links on the way to a folder; what they name has to be there, the rest tar would make."""
        left = deque((part, False) for part in folder.split("/"))
        at: list[str] = []
        hops = 0
        while left:
            part, is_of_link = left.popleft()
            if part in ("", "."):
                continue
            if part == ".." and not at:
                raise self._refusal(member, "a link on its way leads out of the place where it is to be unpacked")
            at = at[:-1] if part == ".." else [*at, part]
            here = "/".join(at)
            if isinstance(target := self._placed.get(here), str):
                hops += 1
                if hops > _MOST_HOPS or target.startswith("/"):
                    raise self._refusal(member, f"a link on its way leads to {target!r}")
                at.pop()
                left.extendleft((name, True) for name in reversed(target.split("/")))
            elif is_of_link and here and here not in self._folders:
                raise self._refusal(member, "a link on its way leads to no folder")
        return "/".join(at)

    def _is_new(self, member: Member, path: str, found: _Placed | str | int) -> bool:
        """Remember what is placed; False where the same is there, raises BuildError where another is."""
        if path not in self._placed:
            self._placed[path] = found
            self._add_folders(path if isinstance(found, int) else path.rpartition("/")[0])
            return True
        before = self._placed[path]
        if before == found or (
            isinstance(before, _Placed)
            and isinstance(found, _Placed)
            and (before.mode, before.size_bytes) == (found.mode, found.size_bytes)
            and self._content_of(before.number) == _digest(member.content)
        ):
            return False
        raise self._refusal(member, "stands there twice, and the second is another than the first")

    def _add_folders(self, folder: str) -> None:
        while folder and folder not in self._folders:
            self._folders.add(folder)
            folder = folder.rpartition("/")[0]

    def _content_of(self, number: int) -> bytes:
        """Read the archive once more to its how manieth member; few have one twice."""
        with decompressed_file(self._path) as tar:
            for at, member in enumerate(walk(tar)):
                if at == number:
                    return _digest(member.content)
        raise NotATarError("it changed while it was read")

    def _in_image(self, path: str) -> str:
        return posixpath.join(self._target, path).rstrip("/")

    def _refusal(self, member: Member, reason: str) -> BuildError:
        return BuildError(f"{self._source.file}: {member.name!r}: {reason}", hint=_HINT)


def _digest(content: Readable) -> bytes:
    digest = hashlib.sha256()
    while block := content.read(BLOCK_BYTES):
        digest.update(block)
    return digest.digest()


def _time(mtime: int) -> int:
    return min(max(mtime, EARLIEST_TIME), _LATEST_TIME)
