"""A release that is assembled goes from lint to notes; only its proof needs an engine, and waits until one is there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from standins import small
from standins.commands import SMALL_BASE, Project
from standins.registries import Registry, running
from unit.lock.loopback import Loopback

pytestmark = [pytest.mark.engine, pytest.mark.registry]

TESTS = Path(__file__).parents[2]
FAMILIES = (TESTS / "families/every-kind", SMALL_BASE)
ASKED = ("release", "25.02", "--variant", "plain", "--public", "--region", "all")
PLACES = ("public", "north", "south")
NOBODY = {"DOCKER_HOST": "unix:///run/nobody.sock"}


@pytest.fixture
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with running(tmp_path_factory.mktemp("registry")) as made:
        yield made


@pytest.fixture
def project(
    tmp_path: Path,
    base_image: str,
    base_rootfs: Path,
    registry: Registry,
    packages: Loopback,
    kits: Loopback,
    remove_images: Callable[[str], None],
) -> Project:
    """Return a locked project in which nothing was built; all of its places are in the registry."""
    made = Project.create(tmp_path, *FAMILIES)
    made.keep(base_rootfs)
    rewrite = {"registry.example": f"{registry.address}/public"}
    rewrite |= {f"registry-vpc.{region}.example": f"{registry.address}/{region}" for region in ("north", "south")}
    small.configure(made, packages, kits, build={"network": "none"}, endpoints={"rewrite": rewrite})
    remove_images("every-kind")
    made.run("lock", "25.02", "--variant", "plain")
    return made


def report(project: Project) -> dict[str, Any]:
    """Return what the last run wrote for machines."""
    folder = project.folder / "build/release/every-kind/25.02-plain"
    found: dict[str, Any] = json.loads((folder / "release.json").read_text())
    return found


def states(project: Project) -> list[str]:
    return [step["state"] for step in report(project)["steps"]]


def test_a_release_is_assembled_and_published_and_only_its_proof_needs_an_engine(
    project: Project, registry: Registry
) -> None:
    said = project.refuse(1, *ASKED, **NOBODY)
    assert "builder: oci (no engine answers at unix:///run/nobody.sock)" in said
    assert "a proof needs an engine" in said
    assert "lj-image push 25.02 --no-verify" in said
    assert states(project) == ["done", "done", "done", "failed"]

    project.run(*ASKED, "--builder", "oci")
    assert states(project) == ["done", "done", "skipped", "done", "done", "skipped"]
    assert report(project)["builder"] == "oci"
    record = json.loads((project.cache / "records/every-kind/25.02-plain.json").read_text())
    digests = {registry.digest(f"{place}/tests/every-kind", "25.02-plain") for place in PLACES}
    assert digests == {record["built"]["manifest"]}  # the very manifest that was assembled: nobody made it anew

    project.run(*ASKED, **NOBODY)
    assert states(project) == ["done", "done", "skipped", "skipped", "skipped", "skipped"]
