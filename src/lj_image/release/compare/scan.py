"""One layer's tar -> what it does to those below, read once as it passes by."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from posixpath import normpath
from typing import Final

from lj_image.oci.streams import BLOCK_BYTES, ChunkReader, HashingChunks, Readable, decompressed, drain
from lj_image.oci.tars import Content, Member, walk
from lj_image.release.compare.tree import IMPLIED, Fact, Kind, LayerTree, Oddity, above

# OCI image spec, layer.md, "Whiteouts" and "Opaque Whiteout".
_WHITEOUT: Final = ".wh."
_OPAQUE: Final = ".wh..wh..opq"
_OF_AUFS: Final = ".wh..wh."
"""What an engine on AUFS keeps for itself; others skip it."""
_XATTR: Final = "SCHILY.xattr."
"""The pax keyword of star, which GNU tar, Go and the engines write."""
# POSIX.1-2017, pax interchange format, typeflag; 7 is a file in one piece, which is a file.
_KINDS: Final[dict[bytes, Kind]] = {
    b"0": "file",
    b"\0": "file",
    b"7": "file",
    b"1": "hard link",
    b"2": "symlink",
    b"3": "character device",
    b"4": "block device",
    b"5": "folder",
    b"6": "fifo",
}
_LARGEST_RECORD_BYTES: Final = 8 * BLOCK_BYTES


def scan_layer(content: Readable) -> tuple[str, LayerTree]:
    """Return the diff id and the tree of a layer; raises NotATarError or zlib.error for what is no tar."""
    with HashingChunks(decompressed(content)) as chunks:
        tar = ChunkReader(chunks)
        draft = _Draft()
        for member in walk(tar):
            draft.add(member)
        drain(tar)  # what follows the tar's end is part of the digest
        return f"sha256:{chunks.hexdigest()}", draft.finished()


@dataclass(slots=True)
class _Draft:
    """A layer while its tar passes by."""

    facts: dict[str, Fact] = field(default_factory=lambda: {"": IMPLIED})
    cleared: set[str] = field(default_factory=set)
    emptied: set[str] = field(default_factory=set)
    oddities: list[Oddity] = field(default_factory=list)

    def add(self, member: Member) -> None:
        path = self._inside(member.path)
        folder, _, name = path.rpartition("/")
        if name == _OPAQUE:
            self.emptied.add(folder)
        elif name.startswith(_OF_AUFS):
            return
        elif name.startswith(_WHITEOUT):
            self.cleared.add(f"{folder}/{name.removeprefix(_WHITEOUT)}".lstrip("/"))
        else:
            self._place(path, _fact(member, path))
            return
        self._hold(path)

    def finished(self) -> LayerTree:
        return LayerTree(self.facts, frozenset(self.cleared), frozenset(self.emptied), tuple(self.oddities))

    def _inside(self, name: str) -> str:
        """Return a name as a path below the root, as engines do that do not refuse it."""
        path = normpath(f"/{name}").lstrip("/")
        if ".." in name.split("/"):
            self.oddities.append(Oddity(printable(name), "a name with `..`; some engines refuse it"))
        return printable(path)

    def _place(self, path: str, fact: Fact) -> None:
        known = self.facts.get(path)
        if known is not None and not known.is_implied:
            self.oddities.append(Oddity(path, "twice in one layer; some engines refuse it, the last one is compared"))
        if fact.kind == "hard link":
            fact = self._linked(path, fact)
        if known is not None and known.kind == "folder" and fact.kind != "folder":
            self._drop_below(path)
        self.facts[path] = fact
        self._hold(path)

    def _linked(self, path: str, link: Fact) -> Fact:
        """Return the file that a hard link names, or the link where a lower layer may have that."""
        found = self.facts.get(link.content)
        if found is None or found.kind == "folder":
            return link
        if (found.mode, found.uid, found.gid) != (link.mode, link.uid, link.gid):
            what = f"a hard link with another mode or owner than {link.content}; engines take one or the other"
            self.oddities.append(Oddity(path, what))
        return found

    def _drop_below(self, path: str) -> None:
        for inner in [item for item in self.facts if item.startswith(f"{path}/")]:
            del self.facts[inner]

    def _hold(self, path: str) -> None:
        """Imply the folders that something lies in."""
        for folder in above(path):
            known = self.facts.get(folder)
            if known is not None and known.kind == "folder":
                return  # those above it are there
            if known is not None:
                self.oddities.append(Oddity(path, f"below {folder}, which is a {known.kind} in the same layer"))
            self.facts[folder] = IMPLIED


def _fact(member: Member, path: str) -> Fact:
    kind = _KINDS.get(member.type, "unknown")
    mode = 0o777 if kind == "symlink" else member.mode
    xattrs = tuple(sorted(_xattrs(member)))
    text = None
    match kind:
        case "file":
            size_bytes = member.content.left_bytes
            content, text = _read(member.content, keep=size_bytes <= _LARGEST_RECORD_BYTES and is_record(path))
            return Fact(kind, mode, member.uid, member.gid, size_bytes, content, xattrs, text=text)
        case "hard link":
            content = printable(normpath(f"/{member.link}").lstrip("/"))
        case "symlink":
            content = printable(member.link)
        case "character device" | "block device":
            content = ":".join(map(str, member.device))
        case _:
            content = ""
    return Fact(kind, mode, member.uid, member.gid, 0, content, xattrs)


def _xattrs(member: Member) -> Iterator[tuple[str, str]]:
    for keyword, value in member.pax.items():
        if keyword.startswith(_XATTR):
            yield printable(keyword.removeprefix(_XATTR)), value.encode(errors="surrogateescape").hex()


def _read(content: Content, *, keep: bool) -> tuple[str, bytes | None]:
    """Return a file's digest, and its bytes compressed if they are wanted."""
    digest, packer = sha256(), zlib.compressobj() if keep else None
    parts = []
    while block := content.read(BLOCK_BYTES):
        digest.update(block)
        if packer is not None:
            parts.append(packer.compress(block))
    return digest.hexdigest(), b"".join((*parts, packer.flush())) if packer is not None else None


def is_record(path: str) -> bool:
    """Say whether a file lists those of an installed distribution (PEP 376, packaging.python.org: Recording)."""
    folder, _, name = path.rpartition("/")
    return name == "RECORD" and folder.endswith(".dist-info")


def printable(name: str) -> str:
    """Return a name that any terminal and JSON can hold; Linux allows names that are no text."""
    return name.encode(errors="surrogateescape").decode(errors="backslashreplace")
