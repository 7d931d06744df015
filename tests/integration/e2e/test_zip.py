"""An archive that is a zip goes the whole way by both builders, and a hostile one fails its step with a name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import docker
import pytest
from scratch import Scratch
from test_every_kind import project_of

from samples.zips import FILE, packed
from standins import small
from standins.vendor import served
from unit.lock.loopback import Loopback

pytestmark = [pytest.mark.engine]

SELECT = ("25.02", "--variant", "zipped")


@pytest.mark.parametrize("builder", ["auto", "docker-classic"])
def test_a_zip_is_roots_with_its_modes_and_links_and_proven(
    builder: str,
    tmp_path: Path,
    scratch: Scratch,
    base_rootfs: Path,
    packages: Loopback,
    kits: Loopback,
    remove_images: Callable[[str], None],
) -> None:
    remove_images("every-kind")
    project = project_of(tmp_path / "zip é", base_rootfs, packages, kits, "registry.example")
    project.run("lock", *SELECT)
    project.run("build", *SELECT, *(() if builder == "auto" else ("--builder", builder)))
    project.run("verify", *SELECT, "--all")
    record = json.loads((project.cache / "records/every-kind/25.02-zipped.json").read_text())
    assert record["verified"]["found"] == {"python": "3.11.2", "kit": "1.2.3"}
    script = "cd '/opt/kit of mine' && find . ! -type d -printf '%p %m %U:%G %l\\n' | sort; find / -xdev -name unzip.py"
    assert scratch.printed("every-kind:25.02-zipped", ["sh", "-ec", script]).splitlines() == [
        "./lib/libkit.so 755 0:0 ",
        "./lib/libkit.so.1 777 0:0 libkit.so",
        "./share/mode d'emploi – 説明.txt 640 0:0 ",
    ]


def test_a_hostile_zip_fails_its_step_with_the_member(
    tmp_path: Path,
    engine: docker.APIClient,
    base_rootfs: Path,
    packages: Loopback,
    remove_images: Callable[[str], None],
) -> None:
    remove_images("every-kind")
    hostile = Loopback(archives={quote(small.KIT_ZIP): packed(("kit/../../../etc/cron.d/x", b"x", FILE | 0o644))})
    with served(hostile):
        project = project_of(tmp_path / "hostile", base_rootfs, packages, hostile, "registry.example")
        project.run("lock", *SELECT)
        said = project.refuse(1, "build", *SELECT)
    assert "'kit/../../../etc/cron.d/x': leads out of the place where it is to be unpacked" in said
    assert engine.images("every-kind:25.02-zipped") == []
