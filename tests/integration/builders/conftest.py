"""A base image of a dozen files, made from this machine's own shell: nothing comes from the network."""

from __future__ import annotations

import secrets
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from scratch import Scratch
from watching import import_base

from lj_image.builders.docker import engine as engines

TOOLS = ("sh", "cat", "sleep", "seq", "base64")


@pytest.fixture(scope="session")
def tiny_rootfs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a tar with a static busybox, or with a few tools and the libraries that they need."""
    path = tmp_path_factory.mktemp("rootfs") / "rootfs.tar"
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as tar:
        folder = tarfile.TarInfo("tmp")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
        tar.addfile(folder)
        for name, source in sorted(_files().items()):
            tar.add(source.resolve(), name, filter=_plain)
    return path


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


def _files() -> dict[str, Path]:
    busybox = Path("/bin/busybox")
    if busybox.exists() and "=>" not in _ldd(busybox):
        return {f"bin/{tool}": busybox for tool in TOOLS}
    files = {f"bin/{tool}": Path(shutil.which(tool) or "") for tool in TOOLS}
    for tool in tuple(files.values()):
        for word in _ldd(tool).split():
            if word.startswith("/"):
                files[word.lstrip("/")] = Path(word)
    return files


def _ldd(program: Path) -> str:
    return subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout


@pytest.fixture(scope="session")
def api(engine: docker.APIClient) -> Iterator[docker.APIClient]:
    """Return the client that the builders get in production."""
    with engines.connect() as api:
        yield api


@pytest.fixture(scope="session")
def tiny_base(api: docker.APIClient, tiny_rootfs: Path, scratch: Scratch) -> str:
    """Return the reference of the tiny base image."""
    return import_base(api, tiny_rootfs, scratch.name("tiny"))


@pytest.fixture
def tag(api: docker.APIClient, scratch: Scratch) -> Iterator[str]:
    """Return a reference for one image, which is removed after the test."""
    reference = f"{scratch.name('built')}:{secrets.token_hex(4)}"
    yield reference
    if api.images(reference):
        api.remove_image(reference, force=True)
