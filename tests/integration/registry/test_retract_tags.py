# ruff: noqa: F811  # fixtures of another module

# ruff: noqa: F401, F811 - fixtures are shared with the tests of status
"""Tags are taken away from real registries: no other tag with them, and no image that the record does not know."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mirroring import RELEASE, REPOSITORY, TAG, Machine, faulty, put, rewriting
from test_status_places import PUBLIC, machine, registry, remember, wanted

from lj_image.oci.source import SourceImage
from lj_image.release.record import Pushed
from samples.images import image
from standins.registries import Registry

pytestmark = pytest.mark.registry
NAME = f"acs-registry-vpc.cn-beijing.cr.aliyuncs.com/{REPOSITORY}"
BEIJING = ("retract", *RELEASE, "--region", "cn-beijing")


def pushed(digest: str, registry: Registry, *tags: str) -> Pushed:
    sent_to = f"{registry.address}/{REPOSITORY}:{TAG}"
    return Pushed(f"{NAME}:{TAG}", sent_to, digest, digest, "vpc", "cn-beijing", True, "2025-02-01", tags)


def test_a_tag_is_taken_away_and_the_record_knows(
    machine: Machine,
    registry: Registry,
    wanted: SourceImage,
) -> None:
    digest = put(registry, wanted)
    records = remember(machine, digest, TAG, pushed(digest, registry))
    done = machine.run(*BEIJING, "--yes", "--json")
    assert done.code == 0, done.errors
    assert [place["state"] for place in json.loads(done.output)["places"]] == ["retracted"]
    assert registry.digest(REPOSITORY, TAG) is None
    record = records.read(TAG)
    assert record is not None
    assert record.pushed == ()
    assert [(item.reference, item.digest) for item in record.retracted] == [(f"{NAME}:{TAG}", digest)]
    again = machine.run(*BEIJING, "--json")  # nothing to ask about
    assert again.code == 0
    assert [place["state"] for place in json.loads(again.output)["places"]] == ["absent"]


def test_without_a_terminal_nothing_goes_before_somebody_says_yes(
    machine: Machine,
    registry: Registry,
    wanted: SourceImage,
) -> None:
    digest = put(registry, wanted)
    remember(machine, digest)
    done = machine.run(*BEIJING)
    assert done.code == 2
    assert "--yes" in done.errors
    assert digest in done.output
    assert registry.digest(REPOSITORY, TAG) == digest


def test_another_tag_of_the_image_keeps_it_where_only_digests_can_be_deleted(
    machine: Machine,
    registry: Registry,
    wanted: SourceImage,
) -> None:
    digest = put(registry, wanted)
    put(registry, wanted, tag="latest")
    remember(machine, digest)
    done = machine.run(*BEIJING, "--yes")
    assert done.code == 1
    assert "latest would go, too" in done.errors
    assert "--force" in done.errors
    assert registry.digest(REPOSITORY, TAG) == registry.digest(REPOSITORY, "latest") == digest
    assert machine.run(*BEIJING, "--yes", "--force").code == 0
    assert registry.digest(REPOSITORY, "latest") is None


def test_a_tag_that_holds_another_image_stays(
    machine: Machine,
    registry: Registry,
    wanted: SourceImage,
    tmp_path: Path,
) -> None:
    recorded = put(registry, wanted)
    held = put(registry, image(tmp_path / "stranger", (b"a stranger",)))
    remember(machine, recorded)
    done = machine.run(*BEIJING, "--yes")
    assert done.code == 1
    assert held in done.errors
    assert recorded in done.errors
    assert registry.digest(REPOSITORY, TAG) == held
    assert machine.run(*BEIJING, "--yes", "--force").code == 0
    assert registry.digest(REPOSITORY, TAG) is None


def test_what_no_record_knows_stays(machine: Machine, registry: Registry, wanted: SourceImage) -> None:
    digest = put(registry, wanted)
    done = machine.run(*BEIJING, "--yes")
    assert done.code == 1
    assert "no record on this machine" in done.errors
    assert registry.digest(REPOSITORY, TAG) == digest


def test_tags_that_go_by_force_leave_the_record_together(
    machine: Machine,
    registry: Registry,
    wanted: SourceImage,
) -> None:
    digest = put(registry, wanted)
    put(registry, wanted, tag="latest")
    records = remember(machine, digest, TAG, pushed(digest, registry, "latest"))
    done = machine.run(*BEIJING, "--tag", "latest", "--yes", "--force", "--json")
    assert done.code == 0, done.errors
    assert [place["also"] for place in json.loads(done.output)["places"]] == [[TAG]]
    record = records.read(TAG)
    assert record is not None
    assert record.pushed == ()
    assert {item.reference for item in record.retracted} == {f"{NAME}:latest", f"{NAME}:{TAG}"}


def test_a_registry_that_deletes_nothing_is_told_with_a_way_out(
    machine: Machine,
    registry: Registry,
    wanted: SourceImage,
) -> None:
    digest = put(registry, wanted)
    put(registry, wanted, "public/")
    remember(machine, digest)
    with faulty(registry, "status:405:0:manifest-delete") as proxy:
        machine.rewrite |= rewriting(proxy.address)
        done = machine.run(*BEIJING, "--public", "--yes")
    assert done.code == 3, done.errors
    assert "does not delete" in done.errors
    assert "storage: {delete: {enabled: true}}" in done.errors
    assert registry.digest(REPOSITORY, TAG) == digest
    assert registry.digest(f"public/{REPOSITORY}", TAG) is None


def test_one_store_under_two_names_is_retracted_from_both(
    machine: Machine,
    registry: Registry,
    wanted: SourceImage,
) -> None:
    digest = put(registry, wanted)
    remember(machine, digest)
    machine.rewrite[PUBLIC] = registry.address
    done = machine.run(*BEIJING, "--public", "--yes", "--json")
    assert done.code == 0, done.errors
    assert [place["state"] for place in json.loads(done.output)["places"]] == ["retracted", "retracted"]


@pytest.mark.parametrize("tag", ["a:b", "", "x@sha256:" + "0" * 64, "-x"])
def test_what_is_no_tag_is_refused(machine: Machine, tag: str) -> None:
    done = machine.run(*BEIJING, "--tag", tag, "--yes")
    assert done.code == 2, done.output
    assert "Traceback" not in done.errors


def test_nothing_says_where_from(machine: Machine) -> None:
    done = machine.run("retract", *RELEASE, "--yes")
    assert done.code == 2
    assert "--region" in done.errors
