"""A project whose image is nothing but random files: something to publish. Also what tests of publishing send."""

from __future__ import annotations

import random
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

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
        f"  {name}: {{title: {name}, sources: {{open: {{kind: files, tree: {name}, path: /opt/{name}}}}}}}\n"
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
    """Give one component its files, or others."""
    tree = folder / "images" / FAMILY / name_of(number)
    tree.mkdir(exist_ok=True)
    source = random.Random(seed)
    with (tree / "random").open("wb") as file:
        for _ in range(mib):
            file.write(source.randbytes(MIB))


def name_of(number: int) -> str:
    """Return a component's name."""
    return f"part{number}"


def host_of(region: str) -> str:
    """Return the host of a region's registry, for a config to rewrite."""
    return f"registry-vpc.{region}.example"
