"""Tiny wheels, and the same distributions as pip would have left them in an image."""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from collections.abc import Iterable, Mapping

WHEEL = b"Wheel-Version: 1.0\nGenerator: stand-in\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def module(name: str, version: str) -> dict[str, bytes]:
    """Return the one file of a module that knows its version."""
    return {f"{name}/__init__.py": f"__version__ = {version!r}\n".encode()}


def distribution(name: str, version: str, files: Mapping[str, bytes], requires: Iterable[str] = ()) -> dict[str, bytes]:
    """Return path -> content of a distribution with its metadata (PEP 376, PEP 427)."""
    stem = f"{name.replace('-', '_')}-{version}"
    metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}", *(f"Requires-Dist: {r}" for r in requires)]
    found = {
        **files,
        f"{stem}.dist-info/METADATA": ("\n".join(metadata) + "\n").encode(),
        f"{stem}.dist-info/WHEEL": WHEEL,
    }
    rows = [f"{path},sha256={_digest(content)},{len(content)}" for path, content in found.items()]
    return {**found, f"{stem}.dist-info/RECORD": "\n".join([*rows, f"{stem}.dist-info/RECORD,,", ""]).encode()}


def wheel(name: str, version: str, files: Mapping[str, bytes], requires: Iterable[str] = ()) -> tuple[str, bytes]:
    """Return the file name and the bytes of a wheel for any platform."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in distribution(name, version, files, requires).items():
            archive.writestr(zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
    return f"{name.replace('-', '_')}-{version}-py3-none-any.whl", target.getvalue()


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
