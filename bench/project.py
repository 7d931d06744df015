"""A project whose image is nothing but random files: something to publish. Also what tests of publishing send."""

from __future__ import annotations

import io
import random
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from typing_extensions import Buffer

MIB: Final = 1024 * 1024
FAMILY, RELEASE, VARIANT = "published", "25.02", "open"
REPOSITORY: Final = f"bench/{FAMILY}"
TAG: Final = f"{RELEASE}-{VARIANT}"

_FAMILY: Final = """\
image: published
title: Published
description: Random files, to be sent.
namespace: bench
endpoints:
  public: {{host: registry.example}}
  vpc: {{host: "registry-vpc.{{region}}.example", regions: [{regions}]}}
variants:
  open: {{title: open, tag: "{{release}}-open", base: {{reference: "registry.example/base:{{os}}", facts: base}}}}
components:
{components}
"""
_RELEASE: Final = """\
release: "25.02"
date: "2025-02-28"
base: {{os: "12"}}
variants:
  open: {{components: {{{versions}}}}}
"""
_BASE: Final = """\
base: registry.example/base:12
python: 3.11.2
glibc: "2.36"
architecture: amd64
site_packages: /usr/local/lib/python3.11/dist-packages
packages: {pip: 23.0.1}
"""


def write_project(folder: Path, layer_mib: Sequence[int], regions: Sequence[str]) -> Path:
    """Write the images' folder, with a layer of each size; return a tar to stand on."""
    images = folder / "images" / FAMILY
    (images / "bases").mkdir(parents=True)
    (images / "releases").mkdir()
    (images / "bases/base.yaml").write_text(_BASE)
    names = [name_of(number) for number in range(len(layer_mib))]
    components = "".join(
        f"  {name}: {{title: {name}, sources: {{open: {{kind: archive, location: parts, archive: {name}.tar, "
        f"path: /opt/{name}}}}}}}\n"
        for name in names
    )
    (images / "image.yaml").write_text(_FAMILY.format(regions=", ".join(regions), components=components))
    versions = ", ".join(f'{name}: "1"' for name in names)
    (images / f"releases/{RELEASE}.yaml").write_text(_RELEASE.format(versions=versions))
    for number, mib in enumerate(layer_mib):
        fill(folder, number, mib, seed=number)
    base = folder / "base.tar"
    with tarfile.open(base, "w") as tar:
        tar.add(images / "bases/base.yaml", "etc/base.yaml")
    return base


def fill(folder: Path, number: int, mib: int, seed: int) -> None:
    """Give one component its archive, or another; it is locked anew then."""
    source, archives = random.Random(seed), archives_of(folder)
    archives.mkdir(exist_ok=True)
    member = tarfile.TarInfo("random")
    member.size = mib * MIB
    content = io.BufferedReader(_Random(source, mib), MIB)
    with tarfile.open(archives / f"{name_of(number)}.tar", "w") as tar:
        tar.addfile(member, content)


class _Random(io.RawIOBase):
    """So many MiB of random bytes."""

    def __init__(self, source: random.Random, mib: int) -> None:
        self._source, self._left = source, mib

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        if not self._left:
            return 0
        self._left -= 1
        memoryview(buffer)[:MIB] = self._source.randbytes(MIB)
        return MIB


def archives_of(folder: Path) -> Path:
    """Return where the archives lie, for a config to name as `parts`."""
    return folder / "archives"


def locks_of(folder: Path) -> Path:
    """Return where the locks lie; without them all is resolved anew."""
    return folder / "images" / FAMILY / "locks"


def name_of(number: int) -> str:
    """Return a component's name."""
    return f"part{number}"


def host_of(region: str) -> str:
    """Return the host of a region's registry, for a config to rewrite."""
    return f"registry-vpc.{region}.example"
