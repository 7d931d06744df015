"""A wheel is held against its own RECORD once; afterwards its digest is enough."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from pathlib import Path

import pytest

from lj_image.builders.oci.inspected import Inspected, inspect_new
from lj_image.builders.oci.wheel.wheel import Wheel
from lj_image.errors import BuildError

EMPTY = "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"
"""The SHA-256 of nothing, as RECORD writes it."""


def wheel(folder: Path, content: bytes) -> Wheel:
    """Make a wheel whose RECORD says that its one module is empty."""
    path = folder / "six"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("six.py", content)
        made.writestr("six-1.0.dist-info/METADATA", b"")
        made.writestr("six-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\n")
        head = b"Wheel-Version: 1.0\n"
        digest = base64.urlsafe_b64encode(hashlib.sha256(head).digest()).decode().rstrip("=")
        rows = f"six.py,sha256={EMPTY},\nsix-1.0.dist-info/METADATA,sha256={EMPTY},0\n"
        rows += f"six-1.0.dist-info/WHEEL,sha256={digest},{len(head)}\nsix-1.0.dist-info/RECORD,,\n"
        made.writestr("six-1.0.dist-info/RECORD", rows)
    return Wheel(path, "six-1.0-py3-none-any.whl", hashlib.sha256(path.read_bytes()).hexdigest())


def test_a_wheel_is_read_once(tmp_path: Path) -> None:
    item = wheel(tmp_path, b"")
    assert inspect_new([item], tmp_path / "cache") == 1
    assert Inspected(tmp_path / "cache").knows(item)
    assert inspect_new([item], tmp_path / "cache") == 0


def test_a_file_that_is_not_what_record_promises_is_refused_and_not_remembered(tmp_path: Path) -> None:
    item = wheel(tmp_path, b"import os\n")
    with pytest.raises(
        BuildError, match=r"six-1\.0-py3-none-any\.whl: six\.py: its content is not what RECORD promises"
    ):
        inspect_new([item], tmp_path / "cache")
    assert not Inspected(tmp_path / "cache").knows(item)
