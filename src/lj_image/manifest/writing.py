"""Files appear whole, by rename, or not at all."""

from __future__ import annotations

from pathlib import Path

from lj_image.errors import UsageError


def replace_text(path: Path, text: str) -> None:
    """Replace a file's content, byte for byte as `text` says; its mode stays, and a link stays a link."""
    target = path.resolve()
    partial = target.with_name(f".{target.name}.partial")
    try:
        partial.write_bytes(text.encode())
        if target.exists():
            partial.chmod(target.stat().st_mode)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def create_text(path: Path, text: str) -> None:
    """Write a new file; raises UsageError for one that exists."""
    if path.exists():
        raise UsageError(f"{path} exists already", hint="edit it, or take another name")
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_text(path, text)
