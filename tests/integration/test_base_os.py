"""BaseOS for real: made from packages, loaded into an engine, run."""

from __future__ import annotations

import hashlib
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path

import docker
import pytest
from scratch import BASE_RECIPE, Scratch

from lj_image.builders import bootstrap as module
from lj_image.builders.bootstrap import bootstrap, load

SMALL = replace(BASE_RECIPE, name="small", include=())


def test_two_makings_of_one_recipe_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = (bootstrap(SMALL, tmp_path / name, log=print) for name in ("first", "second"))
    assert hashlib.sha256(first.read_bytes()).hexdigest() == hashlib.sha256(second.read_bytes()).hexdigest()
    assert not list(first.parent.glob(".making-*"))


def test_debootstrap_serves_where_mmdebstrap_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not shutil.which("debootstrap"):
        pytest.skip("debootstrap is not installed")
    monkeypatch.setattr(module, "_tool", lambda: module._debootstrap)
    with tarfile.open(bootstrap(SMALL, tmp_path, log=print)) as rootfs:
        assert rootfs.getmember("etc/debian_version").isfile()
        assert rootfs.getmember("bin").linkname == "usr/bin"


def test_base_os_holds_what_the_recipe_asks_for_and_no_litter(base_rootfs: Path) -> None:
    with tarfile.open(base_rootfs) as rootfs:
        members = {member.name: member for member in rootfs}
        compiled = [name for name in members if name.endswith(".pyc")]
        flags = {bytecode_flags(rootfs, members[name]) for name in compiled}
    # PEP 552: 1 is "by hash, not checked". By time, clamped times would make every file stale.
    assert (len(compiled) > 1000, flags) == (True, {1})
    assert {"usr/bin/python3", "usr/bin/pip", "etc/ssl/certs/ca-certificates.crt", "var/lib/dpkg/status"} <= set(
        members
    )
    assert max(member.mtime for member in members.values()) <= BASE_RECIPE.source_date_epoch
    assert not {"etc/resolv.conf", "etc/hostname", "etc/machine-id"} & set(members)
    assert [name for name in members if name.startswith("var/lib/apt/lists/") and members[name].isfile()] == []


def bytecode_flags(rootfs: tarfile.TarFile, member: tarfile.TarInfo) -> int:
    file = rootfs.extractfile(member)
    assert file is not None
    return int.from_bytes(file.read(8)[4:], "little")


@pytest.mark.engine
def test_base_image_runs_python_and_pip_and_keeps_its_package_database(scratch: Scratch, base_image: str) -> None:
    script = (
        "python3 -m pip --version && dpkg --audit && dpkg --verify && id -un && echo PIP=$PIP_BREAK_SYSTEM_PACKAGES"
    )
    output = scratch.printed(base_image, ["sh", "-ec", script])
    assert "(python 3.11)" in output
    assert output.splitlines()[-2:] == ["root", "PIP=1"]


@pytest.mark.engine
def test_a_second_load_sends_nothing_and_finds_the_same_image(
    engine: docker.APIClient, base_rootfs: Path, base_image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "load_image", lambda data: pytest.fail("sent again"))
    image_id = load(engine, BASE_RECIPE, base_rootfs)
    found: dict[str, str] = engine.inspect_image(base_image)  # type: ignore[no-untyped-call]
    assert (found["Id"], found["Created"]) == (image_id, "2025-01-01T00:00:00Z")


@pytest.mark.engine
def test_a_command_sent_into_a_running_container_runs_inside_of_it(
    engine: docker.APIClient, scratch: Scratch, base_image: str
) -> None:
    """On an engine started in the wrong kind of root it would run on the host, as root."""
    container = engine.create_container(
        base_image, ["sh", "-c", "touch /inside; sleep 60"], labels=scratch.labels, network_disabled=True
    )["Id"]
    engine.start(container)
    command = engine.exec_create(container, ["sh", "-c", "sleep 1; ls /inside"])
    assert engine.exec_start(command["Id"]) == b"/inside\n"
    engine.remove_container(container, force=True)
