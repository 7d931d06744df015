"""The assembled image beside the one that an engine builds of the same plan: one tree, which runs and goes out.

Engines unpack layers with Go's archive/tar, so that reader is met here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.errors import APIError
from scratch import Scratch
from workshop import Workshop

from lj_image.oci.saved import open_image
from standins.commands import Project
from standins.registries import Registry

SELECT = ("25.02", "--variant", "open")
IMAGE = "assembled:25.02-open"


@dataclass(frozen=True)
class Built:
    """One plan, built by both builders."""

    project: Project
    by_engine: str
    """The image id."""
    assembled: dict[str, Any]
    """What `build --json` said."""
    layout: Path


@pytest.fixture(scope="module")
def built(
    prepared: Project,
    base: Path,
    base_rootfs: Path,
    base_image: str,
    engine: docker.APIClient,
    registry: str,
    scratch: Scratch,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Built]:
    """Build with the engine first, and then without it, into the engine."""
    folder = tmp_path_factory.mktemp("engine")
    project = Workshop.copied(prepared, folder / "copy", base).project
    project.env.clear()
    project.keep(base_rootfs)
    place = f"{registry}/{scratch.prefix}"
    rewrite = {"registry.example": f"{place}/public", "registry-vpc.{region}.example": f"{place}/{{region}}"}
    settings = json.loads(project.config.read_text()) | {"endpoints": {"rewrite": rewrite}}
    project.configure(settings)
    project.run("build", *SELECT, "--builder", "docker")
    by_engine = engine.inspect_image(IMAGE)["Id"]
    layout = folder / "out"
    places = ("--output", f"oci:{layout}", "--output", "engine")
    said = project.run("build", *SELECT, "--builder", "oci", "--json", *places)
    yield Built(project, by_engine, json.loads(said), layout)
    for name in (IMAGE, by_engine, *(f"{place}/{item}/tests/{IMAGE}" for item in ("public", "north"))):
        with suppress(APIError):
            engine.remove_image(name, force=True)


def test_both_builders_make_one_tree(built: Built) -> None:
    assert built.by_engine != built.assembled["image_id"]
    done = built.project.attempt("compare", built.by_engine, str(built.layout), "--json")
    found = json.loads(done.stdout)
    assert [(item["path"], item["aspect"]) for item in found["differences"] if item["excuse"] is None] == []
    assert [item for item in found["configuration"] if item["excuse"] is None] == []
    assert done.returncode == 0
    excuses = {item["excuse"]["title"] for item in found["differences"]}
    assert excuses <= {"INSTALLER", "RECORD", "bytecode", "mount point"}


def test_an_engine_loads_it_layer_by_layer(built: Built, engine: docker.APIClient) -> None:
    image = open_image(built.layout)
    found = engine.inspect_image(IMAGE)
    assert found["RootFS"]["Layers"] == [str(layer.diff_id) for layer in image.layers]
    config, other = found["Config"], engine.inspect_image(built.by_engine)["Config"]
    for key in ("Env", "Cmd", "Entrypoint", "WorkingDir", "User"):
        assert sorted(config[key] or []) == sorted(other[key] or []), key
    assert config["WorkingDir"] == "/work space"
    assert f"GADGETS={dict(item.split('=', 1) for item in config['Env'])['PATH']}:/opt/gadgets" in config["Env"]


def test_what_was_installed_runs(built: Built, scratch: Scratch) -> None:
    script = """
    trinket; python3 -c 'import sys; print("trinket" in sys.modules)'; python3 -m pip show trinket | grep Version
    pwd; gadget; gadget-window; gadget-script; gadget-shell; "/usr/share/assembled notes/run"; echo "$GREETING"
    python3 -c 'import gadget_pure, gadget_plat, common.shared, bulk; print(common.shared.HERE)'
    python3 -m pip check; python3 -m pip show -f gadget | grep -c .
    cat /usr/local/etc/gadget.conf; head -c 7 /usr/include/python3.11/gadget/gadget.h
    """
    said = scratch.printed(IMAGE, ["sh", "-ec", script])
    assert said.splitlines()[:11] == [
        "trinket of ours, naïve",
        "True",
        "Version: 1.2",
        "/work space",
        "gadget 1.0",
        "gadget 1.0",
        "script of 1.0 0",
        "shell",
        "run by the notes",
        "hello, world",
        "True",
    ]
    assert "No broken requirements found." in said
    assert said.endswith("[gadget]\n#define")
    assert said.replace("sha256", "") == scratch.printed(built.by_engine, ["sh", "-ec", script]).replace("sha256", "")


def test_pip_takes_away_what_it_would_have_taken_away(built: Built, scratch: Scratch) -> None:
    script = "python3 -m pip uninstall -y -q gadget && find / -xdev -iname '*gadget*' | sort"
    by_pip, ours = (scratch.printed(image, ["sh", "-ec", script]).splitlines() for image in (built.by_engine, IMAGE))
    assert ours == by_pip
    assert not [line for line in ours if "dist-packages" in line or "/bin/" in line]


def test_it_is_proven_as_any_other(built: Built) -> None:
    assert "gadget" in built.project.run("verify", *SELECT)
    record = json.loads((built.project.cache / "records/assembled/25.02-open.json").read_text())
    assert record["verified"]["passed"]
    assert record["verified"]["image_id"] == built.assembled["image_id"]
    assert record["verified"]["found"]["gadget"] == "1.0"


def test_what_is_pushed_is_what_was_assembled(built: Built, engine: docker.APIClient, registry: str) -> None:
    built.project.run("verify", *SELECT)
    built.project.run("push", *SELECT, "--public", "--region", "north")
    record = json.loads((built.project.cache / "records/assembled/25.02-open.json").read_text())
    manifest = built.assembled["manifest"]
    assert len(record["pushed"]) == 2
    for item in record["pushed"]:
        assert item["digest"] == manifest
        repository, _, tag = item["sent_to"].removeprefix(f"{registry}/").rpartition(":")
        assert Registry(registry).digest(repository, tag) == manifest
        engine.pull(item["sent_to"])
        assert engine.inspect_image(item["sent_to"])["Id"] == engine.inspect_image(IMAGE)["Id"]
