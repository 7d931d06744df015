"""Scanned layers on disk, by diff id: a layer of gigabytes is read once, ever."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from lj_image.release.compare.tree import Fact, LayerTree, Oddity
from lj_image.whole import write_whole

SCANNER: Final = 1
"""Raised when a scan finds other things than before, so that remembered ones are not taken for it."""


class TreeMemory:
    """The trees that are remembered below a cache."""

    def __init__(self, cache_dir: Path) -> None:
        self._folder = cache_dir / "trees"

    def knows(self, diff_id: str) -> bool:
        """Say whether a layer is remembered, well or badly."""
        return self._path(diff_id).exists()

    def read(self, diff_id: str) -> LayerTree | None:
        """Return what is remembered; a damaged file is as good as none."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            return _from_json(json.loads(self._path(diff_id).read_text(encoding="utf-8")))
        return None

    def write(self, diff_id: str, tree: LayerTree) -> None:
        """Keep a layer; does without where nothing can be written."""
        with suppress(OSError):
            write_whole(self._path(diff_id), json.dumps(_to_json(tree), separators=(",", ":")))

    def _path(self, diff_id: str) -> Path:
        return self._folder / f"{diff_id.replace(':', '-')}-{SCANNER}.json"


def _to_json(tree: LayerTree) -> dict[str, Any]:
    return {
        "facts": {path: _row(fact) for path, fact in tree.facts.items()},
        "texts": {path: base64.b64encode(fact.text).decode() for path, fact in tree.facts.items() if fact.text},
        "cleared": sorted(tree.cleared),
        "emptied": sorted(tree.emptied),
        "oddities": [[item.path, item.what] for item in tree.oddities],
    }


def _row(fact: Fact) -> list[Any]:
    return [fact.kind, fact.mode, fact.uid, fact.gid, fact.size_bytes, fact.content, fact.xattrs, fact.is_implied]


def _from_json(kept: dict[str, Any]) -> LayerTree:
    texts = kept["texts"]
    return LayerTree(
        {path: _fact(row, texts.get(path)) for path, row in kept["facts"].items()},
        frozenset(kept["cleared"]),
        frozenset(kept["emptied"]),
        tuple(Oddity(*item) for item in kept["oddities"]),
    )


def _fact(row: list[Any], text: str | None) -> Fact:
    kind, mode, uid, gid, size_bytes, content, xattrs, is_implied = row
    pairs = tuple((name, value) for name, value in xattrs)
    return Fact(kind, mode, uid, gid, size_bytes, content, pairs, is_implied, base64.b64decode(text) if text else None)
