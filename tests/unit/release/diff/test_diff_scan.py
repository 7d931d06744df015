"""Layers: what each adds and takes away, and what is seen of them together."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from pathlib import Path

import pytest
from diff_archives import SITE, digest, distribution, tar_of

from lj_image.oci.tars import NotATarError
from lj_image.release.diff.contents import FileFact
from lj_image.release.diff.scan import LayerFiles, LayerMemory, merged, scan_layer


def scanned(files: dict[str, bytes | None]) -> LayerFiles:
    return scan_layer(io.BytesIO(tar_of(files)))


def seen(*layers: dict[str, bytes | None]) -> list[str]:
    return sorted(merged(map(scanned, layers))[0])


@pytest.mark.parametrize("packed", [lambda tar: tar, gzip.compress])
def test_a_layer_is_known_by_its_tar_whether_compressed_or_not(packed) -> None:  # type: ignore[no-untyped-def]
    tar = tar_of({"etc/motd": b"hello\n", "bin/sh": "→ dash".encode()})
    layer = scan_layer(io.BytesIO(packed(tar)))
    assert (layer.diff_id, layer.size_bytes) == (digest(tar), len(tar))
    assert layer.files == {
        "etc/motd": FileFact(6, hashlib.sha256(b"hello\n").hexdigest()),
        "bin/sh": FileFact(0, "→ dash"),
    }


def test_distributions_are_those_that_python_finds() -> None:
    inner = distribution("vendored", "9")
    layer = scanned(
        distribution("Six_Pack", "1.16.0", "MIT")
        | {path.replace("site-packages/", "site-packages/pkg/_vendor/"): content for path, content in inner.items()}
        | {"usr/lib/python3/dist-packages/old-2.0.egg-info": b"Name: old\nVersion: 2.0\nLicense: PSF\n"}
        | {f"{SITE}/broken-1.dist-info/METADATA": b"nothing\n"}
    )
    assert sorted((item.name, item.version, item.licence) for item in layer.stated.values()) == [
        ("old", "2.0", "PSF"),
        ("six-pack", "1.16.0", "MIT"),
    ]


def test_a_whiteout_takes_a_file_away() -> None:
    assert seen({"a/x": b"1", "a/y": b"1"}, {"a/.wh.x": b""}) == ["a/y"]


def test_a_whiteout_takes_a_folder_away_with_all_below_it() -> None:
    assert seen({"a/b/c/d": b"1", "ab": b"1"}, {".wh.a": b""}) == ["ab"]


def test_an_opaque_folder_hides_what_was_below_and_keeps_its_own() -> None:
    assert seen({"a/x": b"1", "a/b/y": b"1", "z": b"1"}, {"a/new": b"1", "a/.wh..wh..opq": b""}) == ["a/new", "z"]


def test_a_file_in_the_place_of_a_folder_hides_what_was_in_it() -> None:
    assert seen({"lib/x": b"1"}, {"lib": "→ usr/lib".encode()}) == ["lib"]


def test_a_folder_in_the_place_of_a_file_replaces_it() -> None:
    assert seen({"lib": b"1"}, {"lib/": None, "lib/x": b"1"}) == ["lib/x"]
    assert seen({"lib": b"1"}, {"lib/x": b"1"}) == ["lib/x"]
    assert seen({"lib": b"1"}, {"lib": None}) == []


def test_what_a_later_layer_puts_back_is_there() -> None:
    assert seen({"a/x": b"1"}, {"a/.wh.x": b""}, {"a/x": b"2"}) == ["a/x"]


def test_an_upgrade_leaves_the_newer_distribution_alone() -> None:
    old = f"{SITE}/.wh.six-1.dist-info"
    _, stated = merged(map(scanned, (distribution("six", "1"), {old: b"", **distribution("six", "2")})))
    assert [item.version for item in stated.values()] == ["2"]


def test_no_tar_is_no_layer() -> None:
    with pytest.raises(NotATarError):
        scan_layer(io.BytesIO(b'{"architecture": "amd64"}'))


def test_a_layer_is_remembered_as_it_was_read(tmp_path: Path) -> None:
    memory = LayerMemory(tmp_path)
    layer = scanned({"a/.wh.x": b"", "b/.wh..wh..opq": b"", "c": None, "l": "→ ü".encode(), **distribution("six", "1")})
    assert memory.read(layer.diff_id) is None
    memory.write(layer)
    assert memory.read(layer.diff_id) == layer
    (file,) = (tmp_path / "layers").iterdir()
    file.write_text(file.read_text()[:-9])
    assert memory.read(layer.diff_id) is None


def test_a_name_that_is_no_text_can_be_printed() -> None:
    name = b"caf\xe9".decode(errors="surrogateescape")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
        tar.addfile(tarfile.TarInfo(name))
    packed.seek(0)
    assert list(scan_layer(packed).files) == ["caf\\xe9"]
