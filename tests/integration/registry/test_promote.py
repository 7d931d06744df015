"""A release goes from one real registry to others, by a machine that has nothing of it."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from mirroring import RELEASE, REPOSITORY, TAG, Cutting, Machine, blobs_of, faulty, large_image, put, report, rewriting

from lj_image.oci.source import SourceImage
from lj_image.release.record import Built, Record, Records, Verified
from samples.images import image
from standins.registries import Registry, running

pytestmark = pytest.mark.registry
NOW = "2025-02-01T00:00:00+00:00"
MIB = 1024 * 1024


@pytest.fixture
def staging(tmp_path: Path) -> Iterator[Registry]:
    folder = tmp_path / "staging"
    folder.mkdir()
    with running(folder) as registry:
        yield registry


@pytest.fixture
def region(tmp_path: Path) -> Iterator[Registry]:
    folder = tmp_path / "region"
    folder.mkdir()
    with running(folder) as registry:
        yield registry


@pytest.fixture
def wanted(tmp_path: Path) -> SourceImage:
    return image(tmp_path / "blobs")


@pytest.fixture
def machine(tmp_path: Path, staging: Registry, region: Registry) -> Machine:
    return Machine(tmp_path / "machine", rewriting(region.address), {"staging": staging.address})


def remember(machine: Machine, digest: str, wanted: SourceImage, *, passed: bool = True) -> Records:
    records = Records(machine.folder / "cache", "training-nv-pytorch")
    built = Built(str(wanted.image_id), "x:t", "i", "p", "l", "oci", "b", NOW, 1.0, 1, manifest=digest)
    proof = Verified(str(wanted.image_id), passed, 3, (), {}, NOW)
    records.update(TAG, lambda _: Record("training-nv-pytorch", "25.02", "open", built, proof))
    return records


def test_a_release_is_promoted_by_digest_with_nothing_of_it_here(
    machine: Machine, staging: Registry, region: Registry, wanted: SourceImage
) -> None:
    digest = put(staging, wanted)
    done = machine.run("promote", *RELEASE, "--from", "staging", "--region", "cn-beijing")
    assert done.code == 0, done.errors
    assert done.output.splitlines()[-1].endswith(f"/{REPOSITORY}:{TAG}@{digest}")
    assert "no record of this machine" in done.errors
    assert region.digest(REPOSITORY, TAG) == digest
    assert all(blobs_of(region, digest).values())
    again = machine.run("promote", *RELEASE, "--from", "staging", "--region", "cn-beijing", "--json")
    assert again.states() == ["already"]


def test_the_records_digest_is_promoted_though_the_tag_has_moved_since(
    machine: Machine, staging: Registry, region: Registry, wanted: SourceImage, tmp_path: Path
) -> None:
    digest = put(staging, wanted)
    records = remember(machine, digest, wanted)
    put(staging, image(tmp_path / "other", cmd=("other",)))
    done = machine.run("promote", *RELEASE, "--from", "staging", "--region", "cn-beijing")
    assert done.code == 0, done.errors
    assert region.digest(REPOSITORY, TAG) == digest
    record = records.read(TAG)
    assert record is not None
    assert [(item.region, item.digest, item.verified) for item in record.pushed] == [("cn-beijing", digest, True)]


def test_what_is_not_proven_or_not_there_goes_nowhere(
    machine: Machine, staging: Registry, region: Registry, wanted: SourceImage
) -> None:
    remember(machine, "sha256:" + "a" * 64, wanted)
    put(staging, wanted)
    to = ("--from", "staging", "--region", "cn-beijing")
    done = machine.run("promote", *RELEASE, *to)
    assert (done.code, "does not have the image of the record" in done.errors) == (1, True)
    remember(machine, put(staging, wanted), wanted, passed=False)
    done = machine.run("promote", *RELEASE, *to)
    assert (done.code, "not verified" in done.errors) == (1, True)
    assert region.digest(REPOSITORY, TAG) is None
    assert machine.run("promote", *RELEASE, *to, "--no-verify").code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--from", "stagin", "--region", "cn-beijing"), "did you mean staging?"),
        (("--from", "staging", "--region", "cn-bejing"), "did you mean cn-beijing"),
        (("--from", "staging"), "nothing says where to publish"),
        (("--from", "staging", "--public", "--digest", "sha256:12"), "--digest: no digest"),
        (("--from", "localhost:1", "--region", "cn-beijing"), "the source cannot be read: localhost:1 refuses"),
    ],
)
def test_bad_input_is_told_with_the_way_out(machine: Machine, arguments: tuple[str, ...], words: str) -> None:
    done = machine.run("promote", *RELEASE, *arguments)
    assert done.code in (1, 2)
    assert words in done.errors
    assert "Traceback" not in done.errors


def test_within_one_registry_blobs_are_mounted(machine: Machine, staging: Registry, wanted: SourceImage) -> None:
    digest = put(staging, wanted)
    with faulty(staging) as proxy:
        machine.rewrite = rewriting(f"{proxy.address}/vpc")
        done = machine.run("promote", *RELEASE, "--from", proxy.address, "--region", "cn-beijing")
        assert done.code == 0, done.errors
        assert report(proxy)["totals"]["blob_bytes_received"] == 0
    assert staging.digest(f"vpc/{REPOSITORY}", TAG) == digest


def test_a_source_whose_connection_is_cut_is_gone_on_with(
    machine: Machine, staging: Registry, region: Registry, tmp_path: Path
) -> None:
    digest = put(staging, large_image(tmp_path / "blobs", 6 * MIB))
    with Cutting(staging, 2 * MIB, 8) as source:
        machine.places = {"staging": source.address}
        done = machine.run("promote", *RELEASE, "--from", "staging", "--region", "cn-beijing")
        assert done.code == 0, done.errors
        assert source.left < 7
        assert source.passed_bytes < 8 * MIB, "what has arrived is not asked for again"
    assert region.digest(REPOSITORY, TAG) == digest
    assert all(blobs_of(region, digest).values())


def test_a_source_that_gives_other_bytes_moves_no_tag(
    machine: Machine, staging: Registry, region: Registry, wanted: SourceImage
) -> None:
    digest = put(staging, wanted)
    blob = max(blobs_of(staging, digest), key=len)
    (stored,) = (staging_folder(machine) / "blobs").rglob(f"{blob.removeprefix('sha256:')}/data")
    stored.write_bytes(bytes(stored.stat().st_size))
    done = machine.run("promote", *RELEASE, "--from", "staging", "--region", "cn-beijing")
    assert done.code == 1
    assert blob in done.errors
    assert "Traceback" not in done.errors
    assert region.digest(REPOSITORY, TAG) is None


def staging_folder(machine: Machine) -> Path:
    return machine.folder.parent / "staging"


def test_one_dead_region_leaves_the_other_its_release(
    machine: Machine, staging: Registry, region: Registry, wanted: SourceImage
) -> None:
    digest = put(staging, wanted)
    machine.rewrite |= rewriting("localhost:1", "cn-shanghai")
    to = ("--from", "staging", "--region", "cn-beijing", "--region", "cn-shanghai", "--json")
    held = machine.run("promote", *RELEASE, *to, "--all-or-nothing")
    assert held.code == 1
    assert "failed" in held.states()
    assert region.digest(REPOSITORY, TAG) is None
    done = machine.run("promote", *RELEASE, *to)
    assert (done.code, done.states()) == (3, ["published", "failed"])
    assert region.digest(REPOSITORY, TAG) == digest


def test_ctrl_c_ends_a_promotion_whose_source_says_nothing(
    machine: Machine, staging: Registry, region: Registry, tmp_path: Path
) -> None:
    put(staging, large_image(tmp_path / "blobs", 3 * MIB))
    with faulty(staging, "delay:600:0:blob-get") as proxy:
        machine.places = {"staging": proxy.address}
        process = machine.start("promote", *RELEASE, "--from", "staging", "--region", "cn-beijing")
        deadline = time.monotonic() + 30
        while not any(request["kind"] == "blob-get" for request in report(proxy)["requests"]):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        started = time.monotonic()
        _, errors = process.communicate(timeout=30)
        assert time.monotonic() - started < 5
    assert process.returncode == 130, errors
    assert region.digest(REPOSITORY, TAG) is None


def test_a_push_may_take_its_bytes_from_a_region_that_has_the_records_image(
    machine: Machine, staging: Registry, region: Registry, wanted: SourceImage
) -> None:
    digest = put(staging, wanted, "near/")
    machine.rewrite |= rewriting(f"{staging.address}/near", "cn-shanghai")
    near = ("push", *RELEASE, "--region", "cn-beijing", "--from", "cn-shanghai")
    done = machine.run(*near)
    assert (done.code, "no record of this machine says which digest" in done.errors) == (1, True)
    records = remember(machine, digest, wanted)
    done = machine.run(*near, "--json")
    assert done.states() == ["published"], done.errors
    assert region.digest(REPOSITORY, TAG) == digest
    record = records.read(TAG)
    assert record is not None
    assert [(item.region, item.digest) for item in record.pushed] == [("cn-beijing", digest)]


def test_a_dry_run_sends_nothing(machine: Machine, staging: Registry, region: Registry, wanted: SourceImage) -> None:
    put(staging, wanted)
    done = machine.run("promote", *RELEASE, "--from", "staging", "--region", "cn-beijing", "--dry-run", "--json")
    assert (done.code, done.states()) == (0, ["planned"])
    assert json.loads(region.get("_catalog").content)["repositories"] == []
