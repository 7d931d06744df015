"""A release crosses an air gap as a file: out of a real registry or the cache, and into another real registry."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from mirroring import (
    RELEASE,
    REPOSITORY,
    ROOT,
    TAG,
    Cutting,
    Machine,
    blobs_of,
    faulty,
    large_image,
    put,
    report,
    rewriting,
)

from lj_image.builders.oci.layer_cache import LayerCache
from lj_image.oci.copying import copy_into
from lj_image.oci.source import SourceImage
from lj_image.release.record import Built, Record, Records, Verified
from samples.images import image
from standins.registries import Registry, running

pytestmark = pytest.mark.registry
NOW = "2025-02-01T00:00:00+00:00"
MIB = 1024 * 1024


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Registry]:
    (tmp_path / "outside").mkdir()
    with running(tmp_path / "outside") as registry:
        yield registry


@pytest.fixture
def inside(tmp_path: Path) -> Iterator[Registry]:
    (tmp_path / "inside").mkdir()
    with running(tmp_path / "inside") as registry:
        yield registry


@pytest.fixture
def wanted(tmp_path: Path) -> SourceImage:
    return image(tmp_path / "blobs")


@pytest.fixture
def sender(tmp_path: Path, outside: Registry) -> Machine:
    return Machine(tmp_path / "sender", {}, {"staging": outside.address})


@pytest.fixture
def receiver(tmp_path: Path, inside: Registry) -> Machine:
    return Machine(tmp_path / "receiver", rewriting(inside.address))


def in_cache(machine: Machine, wanted: SourceImage, *, passed: bool = True) -> None:
    """Let a machine have assembled and verified an image."""
    descriptor = copy_into(LayerCache(machine.folder / "cache").layout(), wanted)
    name = str(wanted.image_id)
    built = Built(name, "x:t", "i", "p", "l", "oci", "b", NOW, 1.0, 1, manifest=str(descriptor.digest))
    record = Record("training-nv-pytorch", "25.02", "open", built, Verified(name, passed, 3, (), {}, NOW))
    Records(machine.folder / "cache", "training-nv-pytorch").update(TAG, lambda _: record)


@pytest.mark.parametrize("name", ["25.02.tar", "25.02"])
def test_a_release_arrives_as_it_left_with_only_the_manifests_on_the_other_side(
    outside: Registry,
    inside: Registry,
    sender: Machine,
    receiver: Machine,
    wanted: SourceImage,
    tmp_path: Path,
    name: str,
) -> None:
    digest = put(outside, wanted)
    path = tmp_path / name
    done = sender.run("export", *RELEASE, path, "--from", "staging")
    assert done.code == 0, done.errors
    assert digest in done.output
    done = receiver.run("import", path, "--region", "cn-beijing")
    assert done.code == 0, done.errors
    assert inside.digest(REPOSITORY, TAG) == digest
    assert all(blobs_of(inside, digest).values())
    assert receiver.run("import", path, "--region", "cn-beijing", "--json").states() == ["already"]


def test_a_registry_and_the_cache_give_the_same_file_but_for_the_proof(
    outside: Registry, sender: Machine, wanted: SourceImage, tmp_path: Path
) -> None:
    in_cache(sender, wanted)
    put(outside, wanted)
    for name, source in (("cache.tar", ()), ("registry.tar", ("--from", "staging"))):
        done = sender.run("export", *RELEASE, tmp_path / name, *source)
        assert done.code == 0, done.errors
    assert (tmp_path / "cache.tar").read_bytes() == (tmp_path / "registry.tar").read_bytes()
    (found,) = json.loads(sender.run("import", tmp_path / "cache.tar", "--list", "--json").output)["images"]
    assert (found["release"], found["variant"], found["verified"]) == ("25.02", "open", "passed")
    assert found["platforms"] == ["linux/amd64"]


def test_a_file_needs_no_project_to_be_published(
    outside: Registry, inside: Registry, sender: Machine, receiver: Machine, wanted: SourceImage, tmp_path: Path
) -> None:
    digest, path = put(outside, wanted), tmp_path / "25.02.tar"
    assert sender.run("export", *RELEASE, path, "--from", "staging").code == 0
    receiver.project = tmp_path
    done = receiver.run("import", path, "--to", inside.address, "--to", f"{inside.address}/flat:1")
    assert done.code == 0, done.errors
    assert inside.digest(REPOSITORY, TAG) == inside.digest("flat", "1") == digest


def test_skopeo_reads_what_is_exported(outside: Registry, sender: Machine, wanted: SourceImage, tmp_path: Path) -> None:
    if shutil.which("skopeo") is None:
        pytest.skip("skopeo is not installed")
    digest, path = put(outside, wanted), tmp_path / "25.02.tar"
    assert sender.run("export", *RELEASE, path, "--from", "staging").code == 0
    done = subprocess.run(
        ["skopeo", "inspect", "--format", "{{.Digest}}", f"oci-archive:{path}:{TAG}"], capture_output=True, text=True
    )
    assert done.stdout.strip() == digest, done.stderr


def test_a_killed_export_goes_on_in_the_midst_of_a_blob(outside: Registry, sender: Machine, tmp_path: Path) -> None:
    put(outside, large_image(tmp_path / "blobs", 8 * MIB))
    with Cutting(outside, 5 * MIB, 1) as source, faulty(outside, "delay:600:0:blob-get") as silent:
        source.then = silent.address
        process = sender.start("export", *RELEASE, tmp_path / "25.02.tar", "--from", source.address)
        partial, deadline = tmp_path / ".25.02.tar.partial", time.monotonic() + 30
        while not partial.exists() or partial.stat().st_size < 4 * MIB:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.kill()
        process.communicate()
    assert not (tmp_path / "25.02.tar").exists()
    with Cutting(outside, 0, 0) as source:
        done = sender.run("export", *RELEASE, tmp_path / "25.02.tar", "--from", source.address, "--json")
        assert done.code == 0, done.errors
        assert source.passed_bytes < 5 * MIB
    assert json.loads(done.output)["kept_bytes"] > 3 * MIB
    assert not partial.exists()
    sender.run("export", *RELEASE, tmp_path / "whole.tar", "--from", "staging")
    assert (tmp_path / "whole.tar").read_bytes() == (tmp_path / "25.02.tar").read_bytes()


def test_ctrl_c_ends_an_export_at_once_and_says_how_to_go_on(
    outside: Registry, sender: Machine, tmp_path: Path
) -> None:
    put(outside, large_image(tmp_path / "blobs", 2 * MIB))
    with faulty(outside, "delay:600:0:blob-get") as silent:
        process = sender.start("export", *RELEASE, tmp_path / "25.02.tar", "--from", silent.address)
        deadline = time.monotonic() + 30
        while not any(request["kind"] == "blob-get" for request in report(silent)["requests"]):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        assert time.monotonic() - started < 5
    assert process.returncode == 130
    assert "run the same command again" in errors


def test_a_damaged_file_reaches_no_registry_whole_and_moves_no_tag(
    outside: Registry, inside: Registry, sender: Machine, receiver: Machine, tmp_path: Path
) -> None:
    digest, path = put(outside, large_image(tmp_path / "blobs", 3 * MIB)), tmp_path / "25.02.tar"
    assert sender.run("export", *RELEASE, path, "--from", "staging").code == 0
    content = bytearray(path.read_bytes())
    at = len(content) // 2
    content[at] ^= 1
    path.write_bytes(content)
    for arguments in (("--check",), ("--region", "cn-beijing")):
        done = receiver.run("import", path, *arguments)
        assert done.code == 1, done.output
        assert "Traceback" not in done.errors
    assert inside.digest(REPOSITORY, TAG) is None
    manifest = outside.manifest(REPOSITORY, digest)
    largest = max(manifest["layers"], key=lambda layer: int(layer["size"]))["digest"]
    assert inside.get(f"{REPOSITORY}/blobs/{largest}", "HEAD").status_code == 404


def test_a_file_that_was_cut_is_told_before_anything_is_sent(
    outside: Registry, inside: Registry, sender: Machine, receiver: Machine, wanted: SourceImage, tmp_path: Path
) -> None:
    put(outside, wanted)
    path = tmp_path / "25.02.tar"
    assert sender.run("export", *RELEASE, path, "--from", "staging").code == 0
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    with faulty(inside) as proxy:
        receiver.rewrite = rewriting(proxy.address)
        done = receiver.run("import", path, "--region", "cn-beijing")
        assert (done.code, "is damaged" in done.errors) == (1, True), done.errors
        assert report(proxy)["requests"] == []


def test_an_import_that_was_refused_a_place_sends_the_rest_the_second_time(
    outside: Registry, inside: Registry, sender: Machine, receiver: Machine, wanted: SourceImage, tmp_path: Path
) -> None:
    digest, path = put(outside, wanted), tmp_path / "25.02.tar"
    assert sender.run("export", *RELEASE, path, "--from", "staging").code == 0
    with faulty(inside, "status:403:0:manifest-put") as proxy:
        receiver.rewrite = rewriting(proxy.address)
        shorter = ("import", path, "--region", "cn-beijing", "--json")
        assert receiver.run(*shorter).states() == ["failed"]
    with faulty(inside) as proxy:
        receiver.rewrite = rewriting(proxy.address)
        done = receiver.run(*shorter)
        assert done.states() == ["published"], done.errors
        assert report(proxy)["totals"]["blob_bytes_received"] == 0
    assert inside.digest(REPOSITORY, TAG) == digest


def test_what_is_not_verified_is_exported_and_imported_only_when_that_is_wished(
    inside: Registry, sender: Machine, receiver: Machine, wanted: SourceImage, tmp_path: Path
) -> None:
    in_cache(sender, wanted, passed=False)
    path = tmp_path / "25.02.tar"
    done = sender.run("export", *RELEASE, path)
    assert (done.code, "not verified" in done.errors, path.exists()) == (1, True, False)
    assert sender.run("export", *RELEASE, path, "--no-verify").code == 0
    done = receiver.run("import", path, "--region", "cn-beijing")
    assert (done.code, "not verified when it was exported" in done.errors) == (1, True)
    assert receiver.run("import", path, "--region", "cn-beijing", "--no-verify").code == 0
    assert inside.digest(REPOSITORY, TAG) is not None


def test_another_image_under_the_tag_is_not_written_over(
    outside: Registry, inside: Registry, sender: Machine, receiver: Machine, wanted: SourceImage, tmp_path: Path
) -> None:
    theirs = put(inside, image(tmp_path / "theirs", cmd=("theirs",)))
    ours, path = put(outside, wanted), tmp_path / "25.02.tar"
    assert sender.run("export", *RELEASE, path, "--from", "staging").code == 0
    done = receiver.run("import", path, "--region", "cn-beijing", "--json")
    assert (done.code, done.states()) == (1, ["refused"])
    assert theirs in done.output
    assert receiver.run("import", path, "--region", "cn-beijing", "--force-tag").code == 0
    assert inside.digest(REPOSITORY, TAG) == ours


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("import", "absent.tar", "--list"), 2, "no file absent.tar"),
        (("import", "README.md", "--list"), 1, "not a whole tar"),
        (("import", "docs", "--region", "cn-beijing"), 2, "no OCI layout"),
        (("export", *RELEASE, "docs.tar.gz"), 2, "compressed as a whole"),
        (("export", *RELEASE, "/absent/x.tar"), 1, "has not been built on this machine"),
        (("export", *RELEASE, "x.tar", "--from", "cn-bejing"), 2, "did you mean cn-beijing"),
        (("export", "25.99", "x.tar"), 2, "25.99"),
        (("export", *RELEASE, "x.tar", "--from", "localhost:1"), 1, "localhost:1 refuses the connection"),
    ],
)
def test_bad_input_says_what_to_do(tmp_path: Path, arguments: tuple[str, ...], code: int, words: str) -> None:
    done = Machine(tmp_path / "machine").run(*arguments)
    assert done.code == code, done.errors
    assert words in done.errors
    assert "Traceback" not in done.errors
    assert not (ROOT / "x.tar").exists()


def test_a_file_for_places_that_are_unknown_or_not_said_names_the_closest(
    outside: Registry, sender: Machine, receiver: Machine, wanted: SourceImage, tmp_path: Path
) -> None:
    put(outside, wanted)
    path = tmp_path / "25.02.tar"
    assert sender.run("export", *RELEASE, path, "--from", "staging").code == 0
    receiver = replace(receiver, places={"depot": "localhost:1"})
    for arguments, words in (
        ((), "nothing says where to publish"),
        (("--region", "cn-bejing"), "did you mean cn-beijing"),
        (("--to", "depo"), "did you mean depot"),
        (("25.03", "--public"), "has nothing called '25.03'"),
        (("--public", "--digest", "sha256:" + "0" * 64), "and not sha256:000"),
    ):
        done = receiver.run("import", path, *arguments)
        assert done.code in (1, 2)
        assert words in done.errors
