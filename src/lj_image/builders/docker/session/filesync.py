"""Sends the build context to BuildKit, file by file and only what it lacks.

Protocol: moby.filesync.v1.FileSync/DiffCopy, carrying packets of tonistiigi/fsutil (send.go, receive.go). We list
all entries; the engine compares them with what it kept from the last build, and asks for files by their place in
the list, also while we are still listing; each comes in DATA packets up to an empty one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Final
from urllib.parse import unquote_plus

from lj_image.builders.docker.session.ignore import PathPatterns
from lj_image.builders.docker.session.messages import Packet, Stat
from lj_image.builders.docker.session.stream import KIB, RpcError, Status, Stream
from lj_image.builders.docker.tree import Entry, Tree

DIFF_COPY: Final = "/moby.filesync.v1.FileSync/DiffCopy"
DATA_BYTES: Final = 128 * KIB  # old engines refuse messages above 4 MiB
GO_DIRECTORY: Final = 1 << 31  # Go's io/fs.FileMode; unlike st_mode a regular file has no type bit
GO_SPECIAL_BITS: Final = {0o4000: 1 << 23, 0o2000: 1 << 22, 0o1000: 1 << 20}  # setuid, setgid, sticky
SECOND_NS: Final = 1_000_000_000


class PacketType(IntEnum):
    """What an fsutil packet is (types/wire.proto)."""

    STAT = 0
    REQ = 1
    DATA = 2
    FIN = 3
    ERR = 4


class FileSync:
    """Serves named trees: BuildKit asks for `dockerfile` and for `context`."""

    def __init__(self, trees: Mapping[str, Tree], mtime_s: int = 0) -> None:
        self._trees = trees
        self._mtime_s = mtime_s
        self.failure: str | None = None
        """Why a file could not be sent, in words for the user; the build has failed because of it."""

    def diff_copy(self, stream: Stream) -> None:
        """Serve one call; raises RpcError when the call cannot succeed."""
        name = next(iter(stream.metadata.get("dir-name", ())), "")
        if name not in self._trees:
            raise RpcError(Status.NOT_FOUND, f"no access allowed to dir {name!r}")
        try:
            files = self._list(stream, select(self._trees[name], stream.metadata))
            _serve(stream, files)
        except (OSError, FileChangedError) as error:
            self.failure = _reason(error)
            stream.send(Packet(type=PacketType.ERR, data=self.failure.encode()).SerializeToString())
            raise RpcError(Status.UNKNOWN, self.failure) from error

    def _list(self, stream: Stream, entries: Iterable[Entry]) -> Mapping[int, tuple[Entry, int]]:
        """Send the list, and return its files with the size that it promised, by their place."""
        files: dict[int, tuple[Entry, int]] = {}
        for number, entry in enumerate(entries):
            size_bytes = 0 if entry.is_folder else entry.size_bytes()
            if not entry.is_folder:
                files[number] = entry, size_bytes
            stat = Stat(path=entry.path, mode=go_mode(entry), size=size_bytes, mod_time=self._mtime_ns(entry))
            stream.send(Packet(type=PacketType.STAT, stat=stat).SerializeToString())
        stream.send(Packet(type=PacketType.STAT).SerializeToString())
        return files

    def _mtime_ns(self, entry: Entry) -> int:
        """Return the one time that all files have, with a fraction that tells their contents apart.

        The engine asks for a file again when its size or time differs from what it kept, so equal times alone
        would let it build with yesterday's content. Layers hold whole seconds and never see the fraction.
        """
        fraction = 0 if entry.is_folder else int.from_bytes(entry.fingerprint()[:8], "big") % SECOND_NS
        return self._mtime_s * SECOND_NS + fraction


class FileChangedError(Exception):
    """A file is not what the list has promised."""


def go_mode(entry: Entry) -> int:
    """Return an entry's mode as Go's io/fs.FileMode has it."""
    special = sum(bit for unix_bit, bit in GO_SPECIAL_BITS.items() if entry.mode & unix_bit)
    return (entry.mode & 0o777) | special | (GO_DIRECTORY if entry.is_folder else 0)


def select(entries: Tree, metadata: Mapping[str, Sequence[str]]) -> Iterator[Entry]:
    """Yield what the engine wants to see of a tree, folders above a wanted file included.

    `include-patterns` and `followpaths` (sources of COPY; there are no links to follow here) choose, and
    `exclude-patterns` (the .dockerignore, which only we apply) takes away.
    """
    sources = (*_values(metadata, "include-patterns"), *_values(metadata, "followpaths"))
    wanted = PathPatterns(() if "." in sources else sources)
    unwanted = PathPatterns(_values(metadata, "exclude-patterns"))
    above: list[Entry] = []
    for entry in entries:
        above = [folder for folder in above if entry.path.startswith(f"{folder.path}/")]
        if (not wanted or wanted.cover(entry.path)) and not unwanted.cover(entry.path):
            yield from above
            yield entry
            above = []
        elif entry.is_folder:
            above.append(entry)


def _values(metadata: Mapping[str, Sequence[str]], key: str) -> Iterator[str]:
    """Yield a header's values, decoded if it says so."""
    encoded = metadata.get(f"{key}-encoded", ["0"])[0] in ("1", "true")
    for text in metadata.get(key, ()):
        yield unquote_plus(text) if encoded else text


def _serve(stream: Stream, files: Mapping[int, tuple[Entry, int]]) -> None:
    """Answer requests until the engine has all it wants."""
    while (message := stream.recv()) is not None:
        packet = Packet.FromString(message)
        match packet.type:
            case PacketType.REQ:
                _send_file(stream, packet.id, *_requested(files, packet.id))
            case PacketType.FIN:
                stream.send(Packet(type=PacketType.FIN).SerializeToString())
                return
            case PacketType.ERR:
                raise RpcError(Status.UNKNOWN, f"engine: {packet.data.decode('utf-8', 'replace')}")
    raise RpcError(Status.UNKNOWN, "the engine ended the transfer before its end")


def _requested(files: Mapping[int, tuple[Entry, int]], number: int) -> tuple[Entry, int]:
    if number not in files:
        raise RpcError(Status.UNKNOWN, f"the engine asks for entry {number}, which is no file")
    return files[number]


def _send_file(stream: Stream, number: int, entry: Entry, size_bytes: int) -> None:
    sent = 0
    for chunk in entry.chunks(DATA_BYTES):
        sent += len(chunk)
        stream.send(Packet(type=PacketType.DATA, id=number, data=chunk).SerializeToString())
    if sent != size_bytes:
        raise FileChangedError(f"{entry.origin} changed while it was sent: {size_bytes} bytes became {sent}")
    stream.send(Packet(type=PacketType.DATA, id=number).SerializeToString())


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"cannot read {error.filename} for the build context: {error.strerror}"
    return f"build context: {error}"
