"""Layers of a base -> what of its tree decides where our files go: links that lead to folders, and unusual folders.

A layer's `lib/x` would put a folder in the place of the base's link `lib` -> `usr/lib`, and a folder above our files
that a layer states again takes its mode and owner from there.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from lj_image.builders.oci.entries import Folder
from lj_image.oci.streams import Readable
from lj_image.oci.tars import Member, walk
from lj_image.whole import write_whole

SCANNER: Final = 2
"""Raised when a scan finds other things than before, so that remembered ones are not taken for it."""
# OCI image spec, layer.md, "Whiteouts" and "Opaque Whiteout".
_WHITEOUT: Final = ".wh."
_OPAQUE: Final = ".wh..wh..opq"
_SYMLINK: Final = b"2"
_MOST_HOPS: Final = 40
"""Linux follows no more links on one path (path_resolution(7))."""

Node = str | Folder | None
"""A link's target, a folder, or None for anything else."""


@dataclass(frozen=True, slots=True)
class BaseTree:
    """What is known of the folders of a base; paths have no leading slash."""

    folder_links: Mapping[str, str]
    """Path of each link that leads to a folder -> that folder's own path."""
    folders: Mapping[str, Folder] = field(default_factory=dict)
    """The folders that are not 0755 of root's, by their paths: tmp, root, var/mail, …"""


USR_MERGE: Final = BaseTree(
    {
        "bin": "usr/bin",
        "lib": "usr/lib",
        "lib64": "usr/lib64",
        "sbin": "usr/sbin",
        "var/lock": "run/lock",
        "var/run": "run",
    },
    {path: Folder(path, mode) for path, mode in (("root", 0o700), ("tmp", 0o1777), ("var/tmp", 0o1777))},
)
"""What stands in for a base of which only manifest and config are read.

Debian since 12, Ubuntu since 20.04, Fedora, RHEL and SUSE all have these links (file-hierarchy(7), "the merged /usr"),
so a base without them is older than what our images can be built on.
"""


def base_tree(layers: Iterable[Readable]) -> BaseTree:
    """Read the tars of a base, the lowest first; each is read to its end before the next one is asked for.

    Raises NotATarError where one is none.
    """
    tree: dict[str, Node] = {}
    for layer in layers:
        tree = _laid_over(tree, _scanned(layer))
    links = {path: real for path, node in tree.items() if isinstance(node, str) and (real := _folder(tree, path))}
    unusual = {path: node for path, node in tree.items() if isinstance(node, Folder) and node != Folder(path)}
    return BaseTree(dict(sorted(links.items())), dict(sorted(unusual.items())))


@dataclass(slots=True)
class _Layer:
    nodes: dict[str, Node] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    emptied: set[str] = field(default_factory=set)


def _scanned(layer: Readable) -> _Layer:
    found = _Layer()
    for member in walk(layer):
        folder, _, name = member.path.rpartition("/")
        if name == _OPAQUE:
            found.emptied.add(folder)
        elif name.startswith(_WHITEOUT):
            found.removed.add(f"{folder}/{name.removeprefix(_WHITEOUT)}".lstrip("/"))
        elif member.path not in ("", "."):
            found.nodes[member.path] = _node(member)
    return found


def _node(member: Member) -> Node:
    if member.is_folder:
        return Folder(member.path, member.mode, uid=member.uid, gid=member.gid)
    return member.link if member.type == _SYMLINK else None


def _laid_over(tree: Mapping[str, Node], layer: _Layer) -> dict[str, Node]:
    """Return the tree with a layer above it; a folder that a layer only implies is there as well."""
    implied = {folder for path in layer.nodes for folder in _above(path)}
    replaced = {path for path, node in layer.nodes.items() if not isinstance(node, Folder)} & tree.keys()
    gone, hollow = layer.removed | replaced, layer.removed | replaced | layer.emptied
    is_untouched = not hollow
    kept = {
        path: node
        for path, node in tree.items()
        if is_untouched or (path not in gone and "" not in hollow and hollow.isdisjoint(_above(path)))
    }
    folders = {path: Folder(path) for path in implied if not isinstance(kept.get(path), Folder)}
    return {**kept, **folders, **layer.nodes}


def _above(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


def _folder(tree: Mapping[str, Node], path: str) -> str | None:
    """Return the folder that a path leads to; None where that is no folder, or the root itself."""
    left, hops = deque(path.split("/")), 0
    at: list[str] = []
    while left:
        part = left.popleft()
        if part == "..":
            at = at[:-1]
        elif part not in ("", "."):
            at.append(part)
            if isinstance(target := tree.get("/".join(at)), str):
                hops += 1
                if hops > _MOST_HOPS:
                    return None
                at = [] if target.startswith("/") else at[:-1]
                left.extendleft(reversed(target.split("/")))
    real = "/".join(at)
    return real if isinstance(tree.get(real), Folder) else None


class TreeMemory:
    """Trees on disk, by their layers: reading a base takes seconds, and every build asks."""

    def __init__(self, cache_dir: Path) -> None:
        self._folder = cache_dir / "bases"

    def read(self, diff_ids: Iterable[str]) -> BaseTree | None:
        """Return what is remembered; a damaged file is as good as none."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            kept = json.loads(self._path(diff_ids).read_text(encoding="utf-8"))
            folders = {str(path): _folder_of(path, *stated) for path, stated in kept["folders"].items()}
            return BaseTree({str(path): str(real) for path, real in kept["links"].items()}, folders)
        return None

    def write(self, diff_ids: Iterable[str], tree: BaseTree) -> None:
        """Keep a tree; does without where nothing can be written."""
        folders = {path: [item.mode, item.uid, item.gid] for path, item in tree.folders.items()}
        with suppress(OSError):
            write_whole(self._path(diff_ids), json.dumps({"links": dict(tree.folder_links), "folders": folders}))

    def _path(self, diff_ids: Iterable[str]) -> Path:
        digest = hashlib.sha256("\n".join(diff_ids).encode()).hexdigest()
        return self._folder / f"{digest}-tree-{SCANNER}.json"


def _folder_of(path: str, mode: int, uid: int, gid: int) -> Folder:
    return Folder(str(path), int(mode), uid=int(uid), gid=int(gid))
