"""Tiny source distributions that hold their own build backend, so that building them needs no index."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Mapping

from lj_image.lock.lock import Artifact, LockedDistribution
from lj_image.lock.store import ArtifactStore

PYPROJECT = """[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
BACKEND = """
import os, pwd, time, zipfile

TAG, NAME, FAILS, REQUIRES = {tag!r}, {name!r}, {fails!r}, {requires!r}


def get_requires_for_build_wheel(config_settings=None):
    return REQUIRES


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    if FAILS:
        raise SystemExit("no compiler here")
    stem = NAME + "-1.0"
    files = {{
        "app/__init__.py": "OPS = %r" % os.environ.get("OPS"),
        "app/seen.txt": "\\n".join(sorted(os.environ)),
        "app/home.txt": str(os.environ["HOME"] == pwd.getpwuid(os.getuid()).pw_dir),
        "app/tool.sh": "#!/bin/sh\\n",
        stem + ".dist-info/METADATA": "Metadata-Version: 2.1\\nName: %s\\nVersion: 1.0\\n" % NAME
        + "".join("Requires-Dist: %s\\n" % name for name in {{"b", "a", "c", "e", "d"}}),
        stem + ".dist-info/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: %s\\n" % TAG,
        stem + ".dist-info/RECORD": "",
    }}
    order = sorted(files, key=lambda path: hash((path, os.getpid())))
    file = "%s-%s.whl" % (stem, TAG)
    with zipfile.ZipFile(os.path.join(wheel_directory, file), "w") as wheel:
        for path in order:
            info = zipfile.ZipInfo(path, time.localtime()[:6])
            info.external_attr = (0o777 if path.endswith(".sh") else 0o664) << 16
            wheel.writestr(info, files[path])
    return file
"""


def source(
    *,
    tag: str = "py3-none-any",
    name: str = "app",
    fails: bool = False,
    requires: tuple[str, ...] = (),
    pyproject: str = PYPROJECT,
    files: Mapping[str, str] | None = None,
) -> bytes:
    """Return a source distribution of app 1.0, whose wheel has this tag and name, and marks of when it was made."""
    backend = BACKEND.format(tag=tag, name=name, fails=fails, requires=list(requires))
    members = {"app-1.0/pyproject.toml": pyproject, "app-1.0/backend.py": backend, **(files or {})}
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for path, text in members.items():
            member = tarfile.TarInfo(path)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return gzip.compress(target.getvalue(), mtime=0)


def locked(content: bytes, store: ArtifactStore, file: str = "app-1.0.tar.gz") -> LockedDistribution:
    """Put a source distribution into a store, and return what a lock says of it."""
    store.add([content], file, "sdist")
    artifact = Artifact(file, len(content), hashlib.sha256(content).hexdigest(), "sdist")
    return LockedDistribution("app", "1.0", artifact, "pypi", "app")
