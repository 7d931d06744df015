"""Wheels written anew; expected values come from the standard library's own zip reader, and from pip's `installer`."""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from pathlib import Path

import pytest
from installer.sources import WheelFile

from lj_image.builders.source_wheels import canonical
from lj_image.builders.source_wheels.canonical import with_sorted_requirements, write_canonical
from lj_image.errors import BuildError
from standins.wheels import module, wheel

FILES = {
    "pkg/z.py": b"z = 1\n" * 100,
    "pkg/__init__.py": b"",
    "pkg/Grün, weiß.txt": "grün".encode(),
    "pkg/random.bin": hashlib.sha512(b"x").digest(),
}


def rewritten(content: bytes, tmp_path: Path) -> bytes:
    source = tmp_path / "pkg-1.0-py3-none-any.whl"
    source.write_bytes(content)
    target = io.BytesIO()
    write_canonical(source, target)
    return target.getvalue()


def packed(files: dict[str, bytes], *, mode: int = 0o644, when: int = 1990) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for path, content in files.items():
            item = zipfile.ZipInfo(path, (when, 2, 3, 4, 5, 6))
            item.external_attr = mode << 16
            archive.writestr(item, content)
    return target.getvalue()


@pytest.fixture
def files() -> dict[str, bytes]:
    _, content = wheel("pkg", "1.0", FILES)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_files_stay_what_they_are(files: dict[str, bytes], tmp_path: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(rewritten(packed(files), tmp_path))) as archive:
        assert archive.testzip() is None
        found = {name: archive.read(name) for name in archive.namelist()}
    assert found.keys() == files.keys()
    assert {name: found[name] for name in FILES} == FILES


def test_order_times_modes_and_compression_of_the_first_zip_leave_no_trace(
    files: dict[str, bytes], tmp_path: Path
) -> None:
    plain = rewritten(packed(files), tmp_path)
    other = rewritten(packed(dict(reversed(files.items())), mode=0o664, when=2025), tmp_path)
    assert plain == other
    assert rewritten(plain, tmp_path) == plain


def test_metadata_comes_last_and_record_is_the_very_last(files: dict[str, bytes], tmp_path: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(rewritten(packed(files), tmp_path))) as archive:
        names = archive.namelist()
    assert names[-1] == "pkg-1.0.dist-info/RECORD"
    assert names[: len(FILES)] == sorted(FILES)


def test_a_right_to_execute_stays_and_no_other_mode_does(files: dict[str, bytes], tmp_path: Path) -> None:
    for given, kept in ((0o600, 0o644), (0o664, 0o644), (0o700, 0o755), (0o4755, 0o755)):
        with zipfile.ZipFile(io.BytesIO(rewritten(packed(files, mode=given), tmp_path))) as archive:
            item = archive.getinfo("pkg/z.py")
        assert item.external_attr >> 16 == 0o100000 | kept
        assert item.date_time == (1980, 1, 1, 0, 0, 0)


def test_record_holds_what_installer_checks(files: dict[str, bytes], tmp_path: Path) -> None:
    files["pkg-1.0.dist-info/RECORD"] = b"what a broken backend wrote"
    files["pkg-1.0.dist-info/RECORD.jws"] = b"{}"
    path = tmp_path / "pkg-1.0-py3-none-any.whl"
    path.write_bytes(rewritten(packed(files), tmp_path))
    with WheelFile.open(path) as source:
        source.validate_record()
        rows = source.read_dist_info("RECORD").splitlines()
    digest = base64.urlsafe_b64encode(hashlib.sha256(FILES["pkg/z.py"]).digest()).rstrip(b"=").decode()
    assert f"pkg/z.py,sha256={digest},600" in rows
    assert rows[-1] == "pkg-1.0.dist-info/RECORD,,"


def test_a_file_too_large_for_the_memory_is_stored(
    files: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(canonical, "COMPRESSED_BYTES", 500)
    path = tmp_path / "pkg-1.0-py3-none-any.whl"
    path.write_bytes(rewritten(packed(files), tmp_path))
    with WheelFile.open(path) as source:
        source.validate_record()
    with zipfile.ZipFile(path) as archive:
        assert archive.getinfo("pkg/z.py").compress_type == zipfile.ZIP_STORED
        assert archive.read("pkg/z.py") == FILES["pkg/z.py"]


def test_requirements_are_sorted_where_they_stand_together() -> None:
    metadata = b"Name: a\nRequires-Dist: c\nRequires-Dist: b\nProvides-Extra: x\nRequires-Dist: d; extra == 'x'\n"
    end = b"\n\nRequires-Dist: text\nRequires-Dist: of people\n"
    assert with_sorted_requirements(metadata + end) == (
        b"Name: a\nRequires-Dist: b\nRequires-Dist: c\nProvides-Extra: x\nRequires-Dist: d; extra == 'x'\n" + end
    )


def test_metadata_with_a_requirement_on_two_lines_is_left_alone() -> None:
    metadata = b"Name: a\nRequires-Dist: c\n (>=1)\nRequires-Dist: b\n"
    assert with_sorted_requirements(metadata) == metadata


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"no zip", "cannot be read"),
        (packed({"pkg/__init__.py": b""}), "has 0 folders .dist-info"),
        (packed({"a.dist-info/WHEEL": b"", "b.dist-info/WHEEL": b""}), "has 2 folders .dist-info"),
    ],
)
def test_what_is_no_wheel_is_refused(content: bytes, words: str, tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=words):
        rewritten(content, tmp_path)


def test_a_damaged_wheel_is_refused(tmp_path: Path) -> None:
    _, content = wheel("pkg", "1.0", module("pkg", "1.0"))
    at = content.index(b"pkg/__init__.py") + len("pkg/__init__.py") + 2
    with pytest.raises(BuildError, match="cannot be read"):
        rewritten(content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :], tmp_path)
