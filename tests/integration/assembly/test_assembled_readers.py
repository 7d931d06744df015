"""Layers and layouts as tools see them that share no code with us.

Go's archive/tar is what engines unpack with: `test_assembled_engine` has it read every layer.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from programs import program
from workshop import Workshop

from lj_image.oci.layout import Layout

NAME = "25.02-two"
CONTAINERD = ("/run/containerd/containerd.sock", "/run/docker/containerd/containerd.sock")
"""Where it listens by itself, and where an engine has one of its own."""


@pytest.fixture(scope="module")
def layout(module_workshop: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a layout with the image for amd64."""
    folder = tmp_path_factory.mktemp("readers") / "out"
    module_workshop.build("--output", f"oci:{folder}")
    return folder


@pytest.fixture(scope="module")
def layers(layout: Path) -> list[Path]:
    """Return the layers' files, without the base's."""
    manifest = json.loads((layout / "blobs" / _manifest(layout).replace(":", "/")).read_bytes())
    return [layout / "blobs" / layer["digest"].replace(":", "/") for layer in manifest["layers"][1:]]


def _manifest(layout: Path) -> str:
    return str(Layout.open(layout).references()[NAME].digest)


def names_in(layer: Path) -> list[str]:
    with gzip.open(layer) as plain, tarfile.open(fileobj=plain) as tar:
        return sorted(member.name for member in tar)


@pytest.mark.parametrize(
    "words",
    [("tar", "--quoting-style=literal", "-tzf"), ("bsdtar", "-tf")],
    ids=["GNU tar", "libarchive"],
)
def test_tars_list_what_python_lists(words: tuple[str, ...], layers: list[Path]) -> None:
    run = program(words[0])
    for layer in layers:
        found = [line.rstrip("/") for line in run(*words[1:], str(layer)).splitlines()]
        assert sorted(found) == names_in(layer)


def test_busybox_reads_every_layer(layers: list[Path]) -> None:
    run = program("busybox")
    for layer in layers:
        assert len(run("tar", "-tvzf", str(layer)).splitlines()) == len(names_in(layer))


def test_gzip_finds_every_sum_right(layers: list[Path]) -> None:
    for layer in layers:  # which has no suffix that gzip would know
        with layer.open("rb") as file:
            subprocess.run([shutil.which("gzip") or "", "-t"], stdin=file, check=True)


def test_what_tar_unpacks_has_the_modes_and_links_of_the_wheels(layers: list[Path], tmp_path: Path) -> None:
    run = program("tar")
    for layer in layers:
        run("-xzpf", str(layer), "-C", str(tmp_path), "--no-same-owner")
    gadget = tmp_path / "usr/local/lib/python3.11/dist-packages/gadget"
    modes = {path.name: oct(path.stat().st_mode & 0o7777) for path in gadget.iterdir() if path.is_file()}
    # pip leaves 644, and 755 for what has any bit to execute, whatever else the wheel says.
    assert {modes[name] for name in ("native.so", "run.py", "set-id")} == {"0o755"}
    assert {modes[name] for name in ("private.txt", "empty.py", "large.bin")} == {"0o644"}
    assert (tmp_path / "opt/kit of mine/lib/libkit.so.1").readlink() == Path("libkit.so")
    assert (gadget / "large.bin").read_bytes() == bytes(range(256)) * 9_000


def test_skopeo_copies_it_there_and_back_unchanged(layout: Path, tmp_path: Path, skopeo: Callable[..., str]) -> None:
    seen = json.loads(skopeo("inspect", f"oci:{layout}:{NAME}"))
    assert seen["Digest"] == _manifest(layout)
    skopeo("copy", f"oci:{layout}:{NAME}", f"dir:{tmp_path}/dir")
    skopeo("copy", f"dir:{tmp_path}/dir", f"oci:{tmp_path}/back:{NAME}")
    assert _manifest(tmp_path / "back") == _manifest(layout)
    skopeo("copy", f"oci:{layout}:{NAME}", f"docker-archive:{tmp_path}/saved.tar:assembled:{NAME}")


def test_umoci_unpacks_it(layout: Path, tmp_path: Path) -> None:
    run = program("umoci")
    run("unpack", "--rootless", "--image", f"{layout}:{NAME}", str(tmp_path / "bundle"))
    assert (tmp_path / "bundle/rootfs/usr/local/bin/gadget").is_file()


def test_containerd_takes_it(module_workshop: Workshop, tmp_path: Path) -> None:
    run = program("ctr")
    address = next((path for path in CONTAINERD if os.access(path, os.W_OK)), None)
    if address is None:
        pytest.skip(f"no containerd answers at {' or '.join(CONTAINERD)}")
    module_workshop.build("--output", f"oci-archive:{tmp_path}/out.tar")
    space = ("--address", address, "--namespace", f"lj-image-test-{os.getpid()}")
    try:
        run(*space, "images", "import", "--no-unpack", "--base-name", "assembled", f"{tmp_path}/out.tar")
        listed = run(*space, "images", "list")
        assert module_workshop.build()["manifest"] in listed
        assert "linux/amd64" in listed
    finally:
        for name in run(*space, "images", "list", "-q").split():
            run(*space, "images", "remove", "--sync", name)
        run(*space[:2], "namespaces", "remove", space[3])
