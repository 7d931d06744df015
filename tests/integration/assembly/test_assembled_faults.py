"""What goes wrong while layers are assembled is told by name, and leaves nothing half-written."""

from __future__ import annotations

import os
import re
import subprocess
import zipfile
from pathlib import Path

import pytest
from workshop import Workshop, files_of

from lj_image.lock.store import ArtifactStore
from lj_image.oci.saved import open_image
from standins.stack import MIB, liar

GADGET = "gadget-1.0-py3-none-any.whl"
CLASH = "usr/local/lib/python3.11/dist-packages/clashing/__init__.py"


def spoil(path: Path, member: str) -> None:
    """Turn a bit in the middle of a member's compressed bytes; size and time stay what they were."""
    with zipfile.ZipFile(path) as archive:
        found = archive.getinfo(member)
    before, content = path.stat(), bytearray(path.read_bytes())
    content[found.header_offset + 30 + len(found.filename.encode()) + found.compress_size // 2] ^= 0x10
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_wheel_whose_bits_turned_in_the_store_is_named_with_its_member(workshop: Workshop) -> None:
    workshop.build()
    spoil(workshop.stored(GADGET), "gadget/native.so")
    done = workshop.project.attempt(*workshop.arguments("--no-cache"))
    assert done.returncode == 1
    assert GADGET in done.stderr
    assert "gadget/native.so" in done.stderr
    assert workshop.leftovers() == []
    assert workshop.build()["up_to_date"], "the image of before is as it was"


def test_a_wheel_that_is_not_what_the_lock_says_is_not_used(workshop: Workshop) -> None:
    workshop.stored(GADGET).write_bytes(b"PK")
    done = workshop.project.attempt(*workshop.arguments())
    assert done.returncode == 1
    assert "fetching 1 file" in done.stderr, "its index, which nobody can reach, is asked for the right one"
    assert not workshop.project.cache.joinpath("records").exists()
    assert workshop.leftovers() == []


def test_a_wheel_that_does_not_keep_what_its_record_promises_is_named_with_the_member(workshop: Workshop) -> None:
    file, content = liar()
    ArtifactStore(workshop.project.cache).add([content], file, "wheel")
    said = workshop.project.refuse(1, *workshop.arguments(variant="lying"))
    assert f"{file}: liar/__init__.py" in said
    assert "RECORD" in said
    assert workshop.leftovers() == []
    assert list(workshop.oci.glob("layers/*")) == []


@pytest.mark.parametrize(
    ("variant", "parties"),
    [
        ("bundled", ("left-1.0-py3-none-any.whl", "right-1.0-py3-none-any.whl")),
        ("clashing", ("the layer left", "the layer right")),
    ],
)
def test_two_wheels_with_other_files_of_one_path_are_named_and_the_family_settles_it(
    variant: str, parties: tuple[str, str], workshop: Workshop, tmp_path: Path
) -> None:
    said = workshop.project.refuse(1, *workshop.arguments(variant=variant))
    assert f"{parties[0]} and {parties[1]} both bring {CLASH}, with different contents" in said
    assert f"owners: {{/{CLASH}: NAME}}" in said
    assert not workshop.project.cache.joinpath("records").exists()
    family = workshop.project.folder / "images/assembled/image.yaml"
    plain = family.read_text()
    for owner in ("right", "left"):
        family.write_text(f"{plain}owners:\n  /{CLASH}: {owner}\n")
        workshop.build("--output", f"oci:{tmp_path}/{owner}", variant=variant)
        assert files_of(open_image(tmp_path / owner))[CLASH] == f"WHO = {owner!r}\n".encode()


def test_a_full_disk_is_told_and_nothing_is_left_on_it(workshop: Workshop, small_disk: Path) -> None:
    cache = small_disk / "cache"  # the wheels fit, and their layers as well do not
    subprocess.run(["cp", "-r", workshop.project.cache, cache], check=True)
    said = workshop.project.refuse(1, *workshop.arguments(), LJ_IMAGE_CACHE=str(cache))
    assert re.search("the layer (kit|notes|bulk|native|gadget|shared) cannot be written to", said), (
        "written at once; any may meet it"
    )
    assert "No space left on device" in said
    assert "lj-image cache gc" in said
    assert list(cache.rglob(".layer-*")) == []
    assert sum(path.stat().st_size for path in cache.rglob("*") if path.is_file()) < 6 * MIB
