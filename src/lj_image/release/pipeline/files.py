"""Files of a run, known by digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path


def append_text(path: Path, text: str) -> None:
    """Add to the end of a file that may exist already, as a job's page wants it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as target:
        target.write(text)


def sha256_of(path: Path) -> str | None:
    """Return the SHA-256 of a file in hex, None without one."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return None


def are_there(folder: Path, files: Mapping[str, str]) -> bool:
    """Say whether every file lies in a folder with the very content that its digest stands for."""
    return all(sha256_of(folder / name) == digest for name, digest in files.items())


def digest_of(*parts: object) -> str:
    """Return `sha256:…` over values that JSON can hold."""
    return "sha256:" + hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def contents_of(root: Path, paths: Iterable[Path]) -> list[tuple[str, str | None]]:
    """Return path below `root` and digest of each file, in order; what Python compiled is left out."""
    files = (path for path in paths if path.is_file() and "__pycache__" not in path.parts)
    return [(path.relative_to(root).as_posix(), sha256_of(path)) for path in sorted(files)]
