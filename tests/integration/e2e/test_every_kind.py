"""A family with a component of every kind goes the whole way, from a project whose path has spaces and umlauts."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import docker
import pytest
from docker.errors import APIError
from scratch import Scratch

from standins import small
from standins.commands import SMALL_BASE, Project
from standins.registries import Registry
from unit.lock.loopback import Loopback

pytestmark = [pytest.mark.engine, pytest.mark.registry]

TESTS = Path(__file__).parents[2]
FAMILIES = (TESTS / "families/every-kind", SMALL_BASE)
ROOTFS = FAMILIES[0] / "rootfs"
REPOSITORY = "tests/every-kind"
CA_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")


@dataclass(frozen=True)
class Kinds:
    """A project with the family in it, whose image is built, verified and pushed."""

    project: Project
    variant: str
    image_id: str
    said: dict[str, str]


def candidate(engine: docker.APIClient, scratch: Scratch, image: str, package: str) -> str:
    """Return the version that the image's package sources have today."""
    script = f"apt-get update -qq >&2; apt-cache policy {package} | sed -n 's/ *Candidate: //p'"
    host = engine.create_host_config(network_mode="host")
    container = engine.create_container(image, ["sh", "-ec", script], labels=scratch.labels, host_config=host)["Id"]
    try:
        engine.start(container)
        status, version = engine.wait(container)["StatusCode"], engine.logs(container, stderr=False).decode().strip()
    finally:
        engine.remove_container(container, force=True, v=True)
    if status or not version:
        pytest.skip("this engine's containers reach no package sources, even with the host's network")
    return version


def project_of(
    folder: Path, base_rootfs: Path, packages: Loopback, kits: Loopback, place: str, **build: str
) -> Project:
    """Return a configured project that publishes below a place in a registry."""
    folder.mkdir()
    project = Project.create(folder, *FAMILIES)
    project.keep(base_rootfs)
    rewrite = {"registry.example": f"{place}/public", "registry-vpc.{region}.example": f"{place}/{{region}}"}
    small.configure(project, packages, kits, endpoints={"rewrite": rewrite}, build={"network": "host", **build})
    return project


both = pytest.mark.parametrize("kinds", ["full", "plain"], indirect=True)
by_buildkit = pytest.mark.parametrize("kinds", ["full"], indirect=True)


@pytest.fixture(scope="module")
def kinds(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    engine: docker.APIClient,
    scratch: Scratch,
    base_image: str,
    base_rootfs: Path,
    own_registry: Registry,
    packages: Loopback,
    kits: Loopback,
) -> Iterator[Kinds]:
    """Go the whole way: the full variant by BuildKit, the plain one by the classic builder."""
    variant = str(request.param)
    folder = tmp_path_factory.mktemp("kinds") / "Bilder für 25.02 – 画像"
    place = f"{own_registry.address}/kinds"
    bundle = {"ca_bundle": str(CA_BUNDLE)} if CA_BUNDLE.is_file() else {}
    project = project_of(folder, base_rootfs, packages, kits, place, **bundle)
    if variant == "full":
        release = project.folder / "images/every-kind/releases/25.02.yaml"
        version = candidate(engine, scratch, base_image, "hello")
        release.write_text(release.read_text().replace("hello: 2.10-3", f"hello: {version}"))
    select = ("25.02", "--variant", variant)
    said = {"lock": project.run("lock", *select)}
    builder = ("--builder", "docker-classic") if variant == "plain" else ()
    said["build"] = project.run("build", *select, *builder)
    said["verify"] = project.run("verify", *select, "--all")
    said["push"] = project.run("push", "--public", "--region", "all")
    found: dict[str, str] = engine.inspect_image(f"every-kind:25.02-{variant}")  # type: ignore[no-untyped-call]
    yield Kinds(project, variant, found["Id"], said)
    for image in engine.images("every-kind"):
        for name in image["RepoTags"] or ():
            with suppress(APIError):
                engine.remove_image(name, force=True)


@both
def test_each_kind_is_proven(kinds: Kinds) -> None:
    record = json.loads((kinds.project.cache / f"records/every-kind/25.02-{kinds.variant}.json").read_text())
    found = record["verified"]["found"]
    expected = {"python": "3.11.2", "kit": "1.2.3", "notes": "1", "tool": "1.0"}
    if kinds.variant == "full":
        version = found["hello"]
        expected |= {"hello": version, "marker": "made by 'marker' 7"}
    assert found == expected
    assert record["verified"]["passed"] is True


@both
def test_files_keep_bytes_names_and_the_bit_to_run(kinds: Kinds, scratch: Scratch) -> None:
    script = "cd '/usr/share/every kind' && find . -type f | sort | xargs -d '\\n' sha256sum && './run me'"
    *lines, ran = scratch.printed(kinds.image_id, ["sh", "-ec", script]).splitlines()
    assert ran == "run from a path with spaces"
    here = {f"./{path.relative_to(ROOTFS)}": path for path in ROOTFS.rglob("*") if path.is_file()}
    assert {line[66:]: line[:64] for line in lines} == {
        name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in here.items()
    }


@both
def test_an_archive_is_roots_with_its_modes_and_links(kinds: Kinds, scratch: Scratch) -> None:
    script = "cd '/opt/kit of mine' && find . ! -type d -printf '%p %m %U:%G %l\\n' | sort; echo $LD_LIBRARY_PATH"
    assert scratch.printed(kinds.image_id, ["sh", "-ec", script]).splitlines() == [
        "./lib/libkit.so 755 0:0 ",
        "./lib/libkit.so.1 777 0:0 libkit.so",
        "./share/mode d'emploi – 説明.txt 640 0:0 ",
        "/opt/kit of mine/lib",
    ]


@by_buildkit
def test_a_step_had_its_secret_and_kept_none_of_it(kinds: Kinds, engine: docker.APIClient, scratch: Scratch) -> None:
    digest = hashlib.sha256(small.TOKEN.encode()).hexdigest()
    assert scratch.printed(kinds.image_id, ["sh", "-ec", "cat /etc/marker"]).splitlines()[0] == digest
    assert small.TOKEN not in "\n".join(kinds.project.said)
    assert small.TOKEN.encode() not in b"".join(engine.get_image(kinds.image_id))


@both
def test_every_place_has_it(kinds: Kinds, own_registry: Registry) -> None:
    tag = f"25.02-{kinds.variant}"
    digests = {own_registry.digest(f"kinds/{place}/{REPOSITORY}", tag) for place in ("public", "north", "south")}
    assert len(digests) == 1
    assert None not in digests


@by_buildkit
def test_a_partial_image_is_marked_proven_and_never_pushed(kinds: Kinds, engine: docker.APIClient) -> None:
    select = ("25.02", "--variant", kinds.variant)
    before = kinds.project.run("build", *select)
    assert "up to date" in before
    built = kinds.project.run("build", *select, "--only", "tool")
    reference = f"every-kind:25.02-{kinds.variant}-partial"
    assert built.startswith(reference)
    found = engine.inspect_image(reference)  # type: ignore[no-untyped-call]
    assert found["Config"]["Labels"]["io.lj-image.partial"] == "tool"
    assert "tool" in kinds.project.run("verify", reference)
    assert kinds.project.run("build", *select) == before  # the whole image and its proof are as they were
    shutil.rmtree(kinds.project.cache / "records" / "every-kind", ignore_errors=True)
    kinds.project.run("build", *select, "--only", "tool")
    assert "has not been built" in kinds.project.refuse(1, "push", *select, "--public")
    assert "nothing was built" in kinds.project.refuse(2, "push", "--public")
    kinds.project.run("build", *select)


@by_buildkit
def test_a_tried_version_is_marked_proven_and_never_pushed(kinds: Kinds) -> None:
    select = ("25.02", "--variant", kinds.variant)
    lock = kinds.project.folder / f"images/every-kind/locks/25.02-{kinds.variant}.txt"
    before = lock.read_text()
    built = kinds.project.run("build", *select, "--set", "tool=1.1")
    reference = f"every-kind:25.02-{kinds.variant}-try"
    assert built.startswith(reference)
    assert lock.read_text() == before
    assert "1.1" in kinds.project.run("verify", reference)
    shutil.rmtree(kinds.project.cache / "records" / "every-kind", ignore_errors=True)
    kinds.project.run("build", *select, "--set", "tool=1.1")
    assert "has not been built" in kinds.project.refuse(1, "push", *select, "--public")
