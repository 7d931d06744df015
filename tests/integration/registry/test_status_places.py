"""Which image each tag has, asked of real registries, with places that nobody reaches among them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mirroring import RELEASE, REPOSITORY, TAG, Machine, faulty, put, rewriting

from lj_image.oci.source import SourceImage
from lj_image.release.record import Built, Pushed, Record, Records
from samples.images import image
from standins.registries import Registry, free_port, running

pytestmark = pytest.mark.registry
NOW = "2025-02-01T00:00:00+00:00"
IMAGE = "training-nv-pytorch"
PUBLIC = "egslingjun-registry.cn-wulanchabu.cr.aliyuncs.com"


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    folder = tmp_path / "registry"
    folder.mkdir()
    with running(folder) as found:
        yield found


@pytest.fixture
def wanted(tmp_path: Path) -> SourceImage:
    return image(tmp_path / "blobs")


@pytest.fixture
def machine(tmp_path: Path, registry: Registry) -> Machine:
    rewrite = rewriting(registry.address) | rewriting(f"localhost:{free_port()}", "cn-shanghai")
    return Machine(tmp_path / "machine", rewrite | {PUBLIC: f"{registry.address}/public"})


def remember(machine: Machine, digest: str, key: str = TAG, *pushed: Pushed) -> Records:
    records = Records(machine.folder / "cache", IMAGE)
    built = Built(digest, "x:t", "i", "p", "l", "oci", "b", NOW, 1.0, 1, manifest=digest)
    release, _, variant = key.partition("-")
    records.update(key, lambda _: Record(IMAGE, release, variant, built, None, pushed))
    return records


def asked(machine: Machine, *more: str, code: int = 0) -> dict[str, dict[str, Any]]:
    """Return what is said of each place."""
    done = machine.run("status", *RELEASE, "--json", *more)
    assert done.code == code, done.errors
    (found,) = json.loads(done.output)["releases"]
    return {place["place"]: place for place in found["places"]}


PLACES = ("--public", "--region", "cn-beijing", "--region", "cn-shanghai")


def test_each_place_says_what_its_tag_has_and_one_that_is_not_reached_is_no_failure(
    machine: Machine, registry: Registry, wanted: SourceImage
) -> None:
    digest = put(registry, wanted)
    remember(machine, digest)
    found = asked(machine, *PLACES)
    assert {name: place["state"] for name, place in found.items()} == {
        "public": "missing",
        "cn-beijing": "equal",
        "cn-shanghai": "unreachable",
    }
    assert found["cn-beijing"]["digest"] == digest
    assert asked(machine, *PLACES, "--exit-code", code=1)
    assert asked(machine, "--region", "cn-beijing", "--exit-code")
    assert asked(machine, "--region", "cn-beijing", "--region", "cn-shanghai", "--exit-code", code=3)


def test_a_tag_that_holds_another_image_is_drifted_and_known_releases_are_named(
    machine: Machine, registry: Registry, wanted: SourceImage, tmp_path: Path
) -> None:
    older = put(registry, wanted)
    put(registry, image(tmp_path / "stranger", (b"a stranger",)), "public/")
    remember(machine, "sha256:" + "5" * 64)
    remember(machine, older, "25.01-open")
    found = asked(machine, *PLACES)
    assert [found[name]["state"] for name in ("public", "cn-beijing")] == ["drifted", "drifted"]
    assert found["cn-beijing"]["tags"][0]["holds"] == "25.01-open"
    assert found["public"]["tags"][0]["holds"] is None
    done = machine.run("status", *RELEASE, *PLACES)
    assert "drifted: 25.01-open" in done.output
    assert "not reached from here: cn-shanghai" in done.output


def test_without_a_record_a_tag_is_told_and_not_judged(
    machine: Machine, registry: Registry, wanted: SourceImage
) -> None:
    digest = put(registry, wanted)
    place = asked(machine, "--region", "cn-beijing", "--exit-code")["cn-beijing"]
    assert (place["state"], place["digest"]) == ("unrecorded", digest)


def test_a_layer_that_a_place_has_lost_is_found_by_asking_deeply(
    machine: Machine, registry: Registry, wanted: SourceImage
) -> None:
    digest = put(registry, wanted)
    remember(machine, digest)
    whole = asked(machine, "--region", "cn-beijing", "--deep", "--exit-code")["cn-beijing"]
    assert (whole["complete"], whole["lacks"]) == (True, [])
    lost = registry.manifest(REPOSITORY, digest)["layers"][0]["digest"]
    assert registry.get(f"{REPOSITORY}/blobs/{lost}", "DELETE").status_code == 202
    place = asked(machine, "--region", "cn-beijing", "--deep", "--exit-code", code=1)["cn-beijing"]
    assert (place["state"], place["complete"], place["lacks"]) == ("equal", False, [lost])
    assert asked(machine, "--region", "cn-beijing", "--exit-code")["cn-beijing"]["complete"] is None


def test_all_releases_are_a_table_of_places_and_releases(
    machine: Machine, registry: Registry, wanted: SourceImage
) -> None:
    remember(machine, put(registry, wanted))
    done = machine.run("status", "--variant", "open", "--region", "cn-beijing", "--region", "cn-shanghai")
    assert done.code == 0, done.errors
    lines = done.output.splitlines()
    header = lines[lines.index(IMAGE) + 1].split()
    row = dict(zip(header, lines[lines.index(IMAGE) + 2].split(), strict=True))
    assert row["PLACE"] == "cn-beijing"
    assert row[TAG] == "yes"
    assert {cell for name, cell in row.items() if name not in ("PLACE", TAG)} <= {"-"}
    assert sum("not reached from here: cn-shanghai" in line for line in lines) >= 1


def test_a_place_that_refuses_is_told_with_its_words_and_the_others_are_asked(
    machine: Machine, registry: Registry, wanted: SourceImage
) -> None:
    remember(machine, put(registry, wanted, "public/"))
    with faulty(registry, "status:403:0:manifest-head", "status:403:0:manifest-get") as proxy:
        machine.rewrite |= rewriting(proxy.address)
        done = machine.run("status", *RELEASE, "--public", "--region", "cn-beijing")
        found = asked(machine, "--public", "--region", "cn-beijing")
    assert [found[name]["state"] for name in ("public", "cn-beijing")] == ["equal", "refused"]
    assert found["cn-beijing"]["hint"] in done.output.replace("\n", " ")
    assert "Traceback" not in done.errors


def test_a_variant_or_region_that_there_is_not_is_answered_with_the_closest(machine: Machine) -> None:
    for arguments, meant in (
        (("status", "--variant", "opne"), "open"),
        (("status", "25.02", "--variant", "opne"), "open"),
        (("status", "25.2"), "25.02"),
        (("status", "25.02", "--variant", "open", "--region", "cn-bejing"), "cn-beijing"),
    ):
        done = machine.run(*arguments)
        assert done.code == 2
        assert meant in done.errors
