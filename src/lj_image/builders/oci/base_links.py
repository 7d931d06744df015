"""Layers of a base -> what of its tree decides where our files go: links that lead to folders, and unusual modes.

A layer's `lib/x` would put a folder in the place of the base's link `lib` -> `usr/lib`, and a folder above our files
that a layer states again takes its mode from there.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from lj_image.builders.oci.entries import FOLDER_MODE
from lj_image.oci.streams import Readable
from lj_image.oci.tars import walk
from lj_image.whole import write_whole

SCANNER: Final = 1
"""Raised when a scan finds other things than before, so that remembered ones are not taken for it."""
# OCI image spec, layer.md, "Whiteouts" and "Opaque Whiteout".
_WHITEOUT: Final = ".wh."
_OPAQUE: Final = ".wh..wh..opq"
_SYMLINK: Final = b"2"
_MOST_HOPS: Final = 40
"""Linux follows no more links on one path (path_resolution(7))."""

Node = str | int | None
"""A link's target, a folder's mode, or None for anything else."""


@dataclass(frozen=True, slots=True)
class BaseTree:
    """What is known of the folders of a base; paths have no leading slash."""

    folder_links: Mapping[str, str]
    """Path of each link that leads to a folder -> that folder's own path."""
    folder_modes: Mapping[str, int] = field(default_factory=dict)
    """Modes of the folders that have another one than 0755: tmp, root, …"""


USR_MERGE: Final = BaseTree(
    {
        "bin": "usr/bin",
        "lib": "usr/lib",
        "lib64": "usr/lib64",
        "sbin": "usr/sbin",
        "var/lock": "run/lock",
        "var/run": "run",
    },
    {"root": 0o700, "tmp": 0o1777, "var/tmp": 0o1777},
)
"""What stands in for a base of which only manifest and config are read.

Debian since 12, Ubuntu since 20.04, Fedora, RHEL and SUSE all have these links (file-hierarchy(7), "the merged /usr"),
so a base without them is older than what our images can be built on.
"""


def base_tree(layers: Iterable[Readable]) -> BaseTree:
    """Read the tars of a base, the lowest first; raises NotATarError where one is none."""
    tree: dict[str, Node] = {}
    for layer in layers:
        tree = _laid_over(tree, _scanned(layer))
    links = {path: real for path, node in tree.items() if isinstance(node, str) and (real := _folder(tree, path))}
    modes = {path: node for path, node in tree.items() if isinstance(node, int) and node != FOLDER_MODE}
    return BaseTree(dict(sorted(links.items())), dict(sorted(modes.items())))


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
            is_link = member.type == _SYMLINK
            found.nodes[member.path] = member.link if is_link else member.mode if member.is_folder else None
    return found


def _laid_over(tree: Mapping[str, Node], layer: _Layer) -> dict[str, Node]:
    """Return the tree with a layer above it; a folder that a layer only implies is there as well."""
    implied = {folder for path in layer.nodes for folder in _above(path)}
    replaced = {path for path, node in layer.nodes.items() if not isinstance(node, int)} & tree.keys()
    gone, hollow = layer.removed | replaced, layer.removed | replaced | layer.emptied
    is_untouched = not hollow
    kept = {
        path: node
        for path, node in tree.items()
        if is_untouched or (path not in gone and "" not in hollow and hollow.isdisjoint(_above(path)))
    }
    folders = {path: FOLDER_MODE for path in implied if not isinstance(kept.get(path), int)}
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
    return real if isinstance(tree.get(real), int) else None


class TreeMemory:
    """Trees on disk, by their layers: reading a base takes seconds, and every build asks."""

    def __init__(self, cache_dir: Path) -> None:
        self._folder = cache_dir / "bases"

    def read(self, diff_ids: Iterable[str]) -> BaseTree | None:
        """Return what is remembered; a damaged file is as good as none."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            kept = json.loads(self._path(diff_ids).read_text(encoding="utf-8"))
            return BaseTree({str(key): str(value) for key, value in kept["folder_links"].items()}, _modes(kept))
        return None

    def write(self, diff_ids: Iterable[str], tree: BaseTree) -> None:
        """Keep a tree; does without where nothing can be written."""
        with suppress(OSError):
            write_whole(self._path(diff_ids), json.dumps(asdict(tree), indent=1))

    def _path(self, diff_ids: Iterable[str]) -> Path:
        digest = hashlib.sha256("\n".join(diff_ids).encode()).hexdigest()
        return self._folder / f"{digest}-tree-{SCANNER}.json"


def _modes(kept: Mapping[str, Mapping[str, object]]) -> dict[str, int]:
    return {str(key): int(str(value)) for key, value in kept["folder_modes"].items()}
