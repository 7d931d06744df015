"""A stream of `docker save`, in both of its forms: each layer that is asked for is found, wherever it stands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from compare_layers import files, scanned

from lj_image.release.compare.sides import scan_saved
from unit.release.diff.diff_archives import digest, docker_save, oci_files, oci_tar

BASE, APP, TOP = files("etc/os"), files("srv/a"), files("srv/b")
LAYERS = (BASE, APP, TOP)


def chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from iter(lambda: file.read(1000), b"")


def by_24(folder: Path) -> Path:
    return docker_save(folder / "saved.tar", LAYERS)


def by_25(folder: Path) -> Path:
    return oci_tar(folder / "saved.tar", oci_files({"amd64": (LAYERS, {})}, compress=bytes))


def by_containerd(folder: Path) -> Path:
    return oci_tar(folder / "saved.tar", oci_files({"amd64": (LAYERS, {})}))


@pytest.mark.parametrize("form", [by_24, by_25, by_containerd])
def test_the_wanted_layers_are_found(form, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    wanted = frozenset((digest(APP), digest(TOP)))
    found = dict(scan_saved(chunks(form(tmp_path)), wanted, unwanted=frozenset((digest(BASE),))))
    assert found == {digest(APP): scanned(APP), digest(TOP): scanned(TOP)}


def test_the_stream_is_left_when_all_is_found(tmp_path: Path) -> None:
    stream = chunks(by_24(tmp_path))
    assert len(list(scan_saved(stream, frozenset((digest(BASE),))))) == 1
    assert next(stream, None) is not None


def test_a_layer_that_is_not_in_it_is_not_made_up(tmp_path: Path) -> None:
    assert list(scan_saved(chunks(by_25(tmp_path)), frozenset((digest(b"another"),)))) == []
