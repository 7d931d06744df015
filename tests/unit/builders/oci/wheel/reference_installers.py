"""What pip and the `installer` library put on disk: the references that our files are held against.

Both are called in this process, since a process for each generated wheel would take a second.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from lj_image.builders.oci.scheme import Scheme
from lj_image.builders.oci.wheel.wheel import Wheel
from samples.wheels import SCHEME

PIP_WHEEL = "LJ_IMAGE_TEST_PIP"
"""Names the wheel of another pip than the one that is installed, or that came with Python."""


def reference_pip() -> Any:
    """Import pip: the one that is asked for, the installed one, or the one that Python brings for ensurepip."""
    if wheel := os.environ.get(PIP_WHEEL):
        sys.path.insert(0, wheel)
    try:
        pip = importlib.import_module("pip")
    except ImportError:
        bundled = pytest.importorskip("ensurepip", reason="neither pip nor ensurepip is here to compare with")
        sys.path.append(str(next((Path(bundled.__file__).parent / "_bundled").glob("pip-*.whl"))))
        pip = importlib.import_module("pip")
    importlib.import_module("pip._internal.operations.install.wheel")
    return pip


def pips_scheme() -> Scheme:
    """Return the scheme of a base with this Python and the reference's pip."""
    return replace(SCHEME, python="{}.{}".format(*sys.version_info), pip=reference_pip().__version__)


def pip_installs(wheel: Wheel, root: Path, scheme: Scheme, *, pycompile: bool = False) -> None:
    """Have pip install a wheel below a folder that stands for the image's root, as for a plain requirement."""
    pip = reference_pip()
    places = pip._internal.models.scheme.Scheme(**_places(wheel, root, scheme))
    with _executable(scheme), _umask():
        pip._internal.operations.install.wheel.install_wheel(
            wheel.distribution, str(wheel.path), places, wheel.distribution, pycompile, False, requested=True
        )


def installer_installs(wheel: Wheel, root: Path, scheme: Scheme) -> None:
    """Have the `installer` library do the same."""
    from installer import install
    from installer.destinations import SchemeDictionaryDestination
    from installer.sources import WheelFile

    destination = SchemeDictionaryDestination(
        _places(wheel, root, scheme), f"/{scheme.executable}", "posix", overwrite_existing=True
    )
    with WheelFile.open(wheel.path) as source, _umask():
        install(source, destination, {"INSTALLER": b"installer\n", "REQUESTED": b""})


def on_disk(root: Path) -> dict[str, tuple[int, bytes]]:
    """Return path -> mode and bytes of every file below a folder."""
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            found[str(path.relative_to(root))] = (path.stat().st_mode & 0o7777, path.read_bytes())
    return dict(sorted(found.items()))


def _places(wheel: Wheel, root: Path, scheme: Scheme) -> dict[str, str]:
    return {
        "purelib": str(root / scheme.site_packages),
        "platlib": str(root / scheme.site_packages),
        "headers": str(root / scheme.headers / wheel.distribution),
        "scripts": str(root / scheme.scripts),
        "data": str(root / scheme.prefix),
    }


@contextmanager
def _executable(scheme: Scheme) -> Iterator[None]:
    """Let scripts name the image's interpreter; both pip and the distlib in it ask `sys`."""
    with patch.object(sys, "executable", scheme.executable):
        yield


@contextmanager
def _umask() -> Iterator[None]:
    before = os.umask(0o022)
    try:
        yield
    finally:
        os.umask(before)
