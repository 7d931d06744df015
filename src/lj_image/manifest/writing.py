"""Manifests are written whole, and nobody's file is lost."""

from __future__ import annotations

from pathlib import Path

from lj_image.errors import UsageError
from lj_image.whole import write_whole


def replace_text(path: Path, text: str) -> None:
    """Replace a file's content, byte for byte as `text` says; its mode stays, and a link stays a link."""
    target = path.resolve()
    write_whole(target, text, mode=target.stat().st_mode if target.exists() else None, alone=True)


def create_text(path: Path, text: str) -> None:
    """Write a new file; raises UsageError for one that exists."""
    if path.exists():
        raise UsageError(f"{path} exists already", hint="edit it, or take another name")
    replace_text(path, text)
