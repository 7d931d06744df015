"""What the family `assembled` takes from elsewhere: wheels with all that wheels may have; a base in two platforms."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from lj_image.oci.copying import copy_index_into, copy_into
from lj_image.oci.descriptor import Platform
from lj_image.oci.layout import Layout
from samples.images import AMD64, ARM64, image, tar_of
from samples.wheels import FILE, STORED, WHEEL, Member, archive, changed, completed
from unit.lock.loopback import Loopback

MIB: Final = 1024 * 1024
X86: Final = "manylinux_2_17_x86_64.manylinux2014_x86_64"
ARM: Final = "manylinux_2_17_aarch64.manylinux2014_aarch64"
PYTHON: Final = "gadget/__init__.py"
DEEP: Final = "/".join(
    ["gadget", "a folder whose name alone takes some sixty of a hundred bytes", "and one more – 画像"]
)


def index() -> Loopback:
    """Return an index with the wheels of the family."""
    found = Loopback()
    _offer(found, "gadget", _gadget(), requires=("shared",))
    _offer(found, "shared", [Member("common/__init__.py", b""), Member("common/shared.py", b"HERE = True\n")])
    # Large enough that layers are assembled by several processes.
    _offer(found, "bulk", [Member("bulk/noise.bin", random.Random(1).randbytes(5 * MIB), method=STORED)])
    for tag, processor in ((X86, b"x86_64"), (ARM, b"aarch64")):
        body = [Member("native/__init__.py", b"PROCESSOR = %r\n" % processor), Member("native/core.so", processor)]
        _offer(found, "native", body, tag=f"py3-none-{tag}")
    for name in ("left", "right"):
        _offer(found, name, [Member("clashing/__init__.py", b"WHO = %r\n" % name)])
    _offer(found, "both", [Member("both.py", b"")], requires=("left", "right"))
    file, content = liar()
    found.projects["liar"] = {file: content}
    return found


def liar() -> tuple[str, bytes]:
    """Return name and bytes of a wheel with another file than its RECORD promises."""
    promised = completed([Member("liar/__init__.py", b"honest\n")], "liar-1.0.dist-info")
    return "liar-1.0-py3-none-any.whl", archive(changed(promised, "liar/__init__.py", content=b"crooked"))


def base(folder: Path, *platforms: Platform) -> Path:
    """Write an OCI layout with a tiny base for each platform; returns the layout's folder."""
    every = platforms or (AMD64, ARM64)
    images = [
        image(
            folder / "blobs of its own",
            (tar_of({"etc/os-release": b"ID=tiny\n", "usr/bin/python3": str(platform).encode()}),),
            platform=platform,
        )
        for platform in every
    ]
    layout = Layout.create(folder / "base")
    if len(images) == 1:
        copy_into(layout, images[0], "12")
    else:
        copy_index_into(layout, images, "12")
    return layout.folder


def _offer(
    found: Loopback, name: str, members: Iterable[Member], *, requires: tuple[str, ...] = (), tag: str = "py3-none-any"
) -> None:
    info = f"{name}-1.0.dist-info"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0", *(f"Requires-Dist: {item}" for item in requires)]
    head = [
        Member(f"{info}/METADATA", "\n".join([*lines, ""]).encode()),
        Member(f"{info}/WHEEL", WHEEL.replace(b"py3-none-any", tag.encode())),
    ]
    content = archive(completed([*members, *head], info))
    found.projects.setdefault(name, {})[f"{name}-1.0-{tag}.whl"] = content


def _gadget() -> list[Member]:
    """Return scripts, entry points, data files, headers, both libraries, and names and times of every kind."""
    own = "gadget-1.0.data"
    main = b"__version__ = '1.0'\n\n\ndef main():\n    print('gadget', __version__)\n"
    script = b"#!python -E\nimport gadget, sys\nprint('script of', gadget.__version__, sys.flags.ignore_environment)\n"
    return [
        Member(PYTHON, main),
        Member("gadget/native.so", b"\x7fELF " * 2_000, mode=FILE | 0o755),
        Member("gadget/run.py", b"#!/usr/bin/env python3\nprint('run')\n", mode=FILE | 0o700),
        Member("gadget/private.txt", b"private\n", mode=FILE | 0o600),
        Member("gadget/set-id", b"no more than a file\n", mode=FILE | 0o6755),
        Member("gadget/empty.py", b"", method=STORED),
        Member("gadget/stored.bin", random.Random(2).randbytes(70_000), method=STORED),
        Member("gadget/large.bin", bytes(range(256)) * 9_000, time=(1980, 1, 1, 0, 0, 0)),
        Member("gadget/of the future.txt", b"", time=(2099, 12, 31, 23, 59, 58)),
        Member("gadget/descriptor.txt", b"its sizes come behind it\n" * 40, has_descriptor=True),
        Member("gadget/wide.txt", b"zip64\n" * 40, is_zip64=True),
        Member(f"{DEEP}/{'n' * 120}.txt", b"pax\n"),
        Member("common/__init__.py", b""),
        Member(f"{own}/scripts/gadget-script", script, mode=FILE | 0o755),
        Member(f"{own}/scripts/gadget-shell", b"#!/bin/sh\necho shell\n", mode=FILE | 0o755),
        Member(f"{own}/scripts/gadget-text", b"no bit to execute\n"),
        Member(f"{own}/data/share/gadget/read me.txt", b"Read me.\n"),
        Member(f"{own}/data/etc/gadget.conf", b"[gadget]\n"),
        Member(f"{own}/headers/gadget.h", b"#define GADGET 1\n"),
        Member(f"{own}/purelib/gadget_pure.py", b"PURE = True\n"),
        Member(f"{own}/platlib/gadget_plat.py", b"PLAT = True\n"),
        Member(
            "gadget-1.0.dist-info/entry_points.txt",
            b"[console_scripts]\ngadget = gadget:main\n[gui_scripts]\ngadget-window = gadget:main\n",
        ),
    ]
