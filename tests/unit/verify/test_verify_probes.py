from __future__ import annotations

import io
import tarfile
import typing
import zipfile
from pathlib import Path

import pytest

from lj_image.catalog.release import (
    AptSource,
    ArchiveSource,
    Component,
    ComponentSource,
    FilesSource,
    PipSource,
    RunSource,
)
from lj_image.errors import ArtifactError, ManifestError
from lj_image.verify import inside
from lj_image.verify.agent import Answer
from lj_image.verify.probes import PROBES, Context, Finding, archive, cudart, cudnn, nccl, nvrtc, probe_name, probe_of
from unit.verify.verify_subjects import base_component, component, pip_source

NOWHERE = Context({})


def find(item: Component, context: Context = NOWHERE, **answers: object) -> Finding:
    found = {name: value if isinstance(value, Answer) else Answer(value) for name, value in answers.items()}
    assert probe_of(item).ask(item, context).keys() == found.keys()
    return probe_of(item).read(item, context, found)


def one_of_each_kind(tmp_path: Path) -> list[Component]:
    (tmp_path / "f").write_text("x")
    return [
        *(base_component("x", "1.0", name) for name in PROBES if name not in ("archive", "files", "apt", "run")),
        component("x", "1", pip_source("x", "1")),
        component("x", "1", ArchiveSource("a", "a", "/opt", 0, None, "none")),
        component("x", "1", FilesSource(tmp_path, "/")),
        component("x", "1", AptSource((("x", "1"),))),
        component("x", "1", RunSource(("x",), "x", "x")),
    ]


def test_every_kind_of_component_has_a_probe_that_asks_what_the_agent_knows(tmp_path: Path) -> None:
    components = one_of_each_kind(tmp_path)
    assert {type(item.source) for item in components} == set(typing.get_args(ComponentSource))
    for item in components:
        for question in probe_of(item).ask(item, NOWHERE).values():
            assert question["op"] in inside.OPERATIONS


def test_an_unknown_probe_is_an_error_that_names_the_closest() -> None:
    with pytest.raises(ManifestError, match="'cudn', which does not exist") as failure:
        probe_of(base_component("cudnn", "9", "cudn"))
    assert "cudnn" in (failure.value.hint or "")


@pytest.mark.parametrize(
    ("decode", "values", "version"),
    [
        (cudart.decode, [12080], "12.8"),
        (cudart.decode, [11080], "11.8"),
        (cudart.decode, [13000], "13.0"),
        (cudnn.decode, [90700], "9.7.0"),
        (cudnn.decode, [91002], "9.10.2"),
        (cudnn.decode, [8907], "8.9.7"),
        (nccl.decode, [22304], "2.23.4"),
        (nccl.decode, [2804], "2.8.4"),
        (nvrtc.decode, [12, 8], "12.8"),
    ],
)
def test_numbers_of_libraries_are_read_as_their_headers_define_them(
    decode: typing.Callable[[list[int]], str], values: list[int], version: str
) -> None:
    assert decode(values) == version


@pytest.mark.parametrize(
    ("promised", "values", "kept"), [("9.7.0.66", [90700], True), ("9.7.1.26", [90700], False), ("9.7", [90700], False)]
)
def test_a_library_keeps_a_promise_as_far_as_it_can_say(promised: str, values: list[int], kept: bool) -> None:
    finding = find(base_component("cudnn", promised, "cudnn"), here={"values": values, "path": "/l"})
    assert (finding.kept, finding.found) == (kept, "9.7.0")


def test_a_library_is_looked_for_where_its_component_has_it() -> None:
    pip = component("nccl", "2.23.4", pip_source("nvidia-nccl-cu12", "2.23.4", probe="nccl"))
    assert probe_of(pip).ask(pip, NOWHERE)["here"]["distributions"] == ["nvidia-nccl-cu12"]
    packed = component("accl-n", "2.23.4.11", ArchiveSource("a", "a", "/opt/accl", 1, "lib", "nccl"))
    asked = probe_of(packed).ask(packed, NOWHERE)
    assert asked["here"]["below"] == "/opt/accl"
    assert "below" not in asked["loaded"]


def test_of_two_libraries_the_promised_one_is_asked_first() -> None:
    for version, first in (("12.8.0", "libcudart.so.12"), ("11.8.0", "libcudart.so.11.0"), ("13.0", "libcudart.so.13")):
        item = base_component("cuda", version, "cudart")
        assert probe_of(item).ask(item, NOWHERE)["here"]["sonames"][0] == first


def test_an_archive_that_loses_to_the_bases_library_is_broken() -> None:
    item = component("accl-n", "2.23.4.11", ArchiveSource("a", "a", "/opt/accl", 1, "lib", "nccl"))
    here = {"values": [22304], "path": "/opt/accl/lib/libnccl.so.2"}
    finding = find(item, here=here, loaded={"values": [22501], "path": "/usr/lib/libnccl.so.2"})
    assert (finding.kept, finding.found) == (False, "2.25.1")
    assert finding.message == "programs load /usr/lib/libnccl.so.2 instead of /opt/accl/lib/libnccl.so.2"


def test_a_library_that_is_absent_is_a_failure_with_its_reason() -> None:
    finding = find(base_component("cudnn", "9.7", "cudnn"), here=Answer(None, "libcudnn.so was not found"))
    assert (finding.kept, finding.found, finding.message) == (False, None, "libcudnn.so was not found")


@pytest.mark.parametrize(
    ("promised", "found", "kept"),
    [
        ("4.48.3", "4.48.3", True),
        ("4.48.3+ali", "4.48.3+ali", True),
        ("4.48.3+ali", "4.48.3", False),
        ("4.48.3", "4.48.3+ali", False),
        ("1.0", "1.0.0", True),
        ("2.0", "2.0.post1", False),
        ("1.0-1", "1.0.post1", True),
    ],
)
def test_metadata_are_compared_exactly(promised: str, found: str, kept: bool) -> None:
    item = component("x", promised, pip_source("Some_Thing", promised))
    answer = [{"name": "some.thing", "version": found}, {"name": "some-thing", "version": "0.1"}]
    assert find(item, installed=answer).kept is kept


def test_all_distributions_of_a_component_are_compared() -> None:
    source = PipSource((("a", "1"), ("b", "2")), "pypi", None, overrides=False, probe="metadata")
    finding = find(component("ab", "12", source), installed=[{"name": "a", "version": "1"}])
    assert (finding.kept, finding.message) == (False, "b is not installed instead of 2")


@pytest.mark.parametrize(
    ("promised", "found", "kept"),
    [
        ("2.5.1", "2.5.1+cu124", True),
        ("2.6.0a0+ecf3bae40a.nv25.1", "2.6.0a0+ecf3bae40a.nv25.1", True),
        ("2.6.0a0+ecf3bae", "2.6.0a0+ecf3bae40a.nv25.1", True),
        ("2.6.0a0+ecf3bae40a.nv25.1", "2.6.0", False),
        ("2.5.1", "2.6.0", False),
    ],
)
def test_torch_says_its_own_local_version(promised: str, found: str, kept: bool) -> None:
    assert find(base_component("torch", promised, "torch"), version=found).kept is kept


def test_the_systems_own_versions() -> None:
    assert find(base_component("python", "3.12", "python"), version="3.12.3").kept
    assert not find(base_component("python", "3.1", "python"), version="3.12.3").kept
    ubuntu = find(base_component("ubuntu", "24.04", "os-release"), version={"VERSION_ID": "24.04"})
    assert (ubuntu.kept, ubuntu.found) == (True, "24.04")


def test_an_environment_variable_may_say_more() -> None:
    context = Context({"CUDA_VERSION": "12.8.0.038"})
    assert find(base_component("cuda", "12.8.0", "env:CUDA_VERSION"), context).kept
    assert not find(base_component("cuda", "12.8.1", "env:CUDA_VERSION"), context).kept
    assert "no variable NAME" in find(base_component("cuda", "12", "env:NAME"), context).message


def test_a_component_that_nobody_can_ask_is_not_called_kept() -> None:
    finding = find(base_component("perf", "5.4.30", "none"))
    assert (finding.probed, finding.kept, finding.found) == (False, False, None)


@pytest.mark.parametrize(("wanted", "kept"), [("15.0.50.20240403-git", True), ("15.0*", True), ("15.1*", False)])
def test_a_star_stands_for_the_distributions_revision(wanted: str, kept: bool) -> None:
    item = component("gdb", "15", AptSource((("gdb", wanted),)))
    assert find(item, packages={"gdb": "15.0.50.20240403-git"}).kept is kept
    assert not find(item, packages={}).kept


def test_a_check_has_to_succeed_and_to_print_what_is_expected() -> None:
    item = component("x", "1", RunSource(("x",), "x --version", "1.2"))
    assert find(item, check={"exit_code": 0, "output": "x 1.2\n"}).kept
    assert not find(item, check={"exit_code": 1, "output": "x 1.2\n"}).kept
    assert find(item, check={"exit_code": 0, "output": "x 1.3\n"}).found == "x 1.3"


def state(**more: object) -> dict[str, object]:
    return {"type": "file", "sha256": None, "link": None, "mode": 0o644, "uid": 0, "gid": 0, **more}


HELLO = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"  # printf hello | sha256sum


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (state(sha256=HELLO), ""),
        (state(sha256=HELLO, mode=0o600), ""),
        (state(sha256=HELLO, mode=0o755), "/etc/motd has mode 0755"),
        (state(sha256="0" * 64), "/etc/motd has other content"),
        (None, "/etc/motd is missing"),
    ],
)
def test_files_are_compared_by_content_and_executable_bit(tmp_path: Path, found: object, reason: str) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "motd").write_text("hello")
    finding = find(component("m", "1", FilesSource(tmp_path, "/")), files={"/etc/motd": found})
    assert finding.kept is not bool(reason)
    if reason:
        assert finding.message == reason


@pytest.fixture(params=["tar.gz", "zip"])
def packed(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"vendor's.{request.param}"
    if request.param == "zip":
        with zipfile.ZipFile(path, "w") as pack:
            member = zipfile.ZipInfo("top/bin/run")
            member.external_attr = 0o100755 << 16
            pack.writestr(member, b"hello")
        return path
    with tarfile.open(path, "w:gz") as tar:
        member = tarfile.TarInfo("./top/bin/run")
        member.mode, member.size = 0o755, 5
        tar.addfile(member, io.BytesIO(b"hello"))
    return path


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (state(sha256=HELLO, mode=0o755), ""),
        (state(sha256=HELLO, mode=0o700), "/opt/x/bin/run has mode 0700 instead of 0755"),
        (state(sha256=HELLO, mode=0o755, uid=1000), "/opt/x/bin/run belongs to 1000:0 instead of root"),
        (state(sha256="0" * 64, mode=0o755), "/opt/x/bin/run has other content"),
        (None, "/opt/x/bin/run is missing"),
    ],
)
def test_archives_are_compared_by_content_mode_and_owner(packed: Path, found: object, reason: str) -> None:
    stored = packed.rename(packed.with_name("digest-without-suffix"))
    item = component("x", "1.0", ArchiveSource(packed.name, "a", "/opt/x", 1, None, "none"))
    finding = find(item, Context({}, stored), files={"/opt/x/bin/run": found})
    assert (finding.kept, finding.found) == ((False, "other files") if reason else (True, "1.0"))
    assert reason in finding.message


def test_a_tar_that_ends_with_a_zip_is_a_tar(tmp_path: Path) -> None:
    spool = io.BytesIO()
    with zipfile.ZipFile(spool, "w") as pack:
        pack.writestr("inner", b"hello")
    path = tmp_path / "kit.tar"
    with tarfile.open(path, "w") as tar:
        member = tarfile.TarInfo("kit.zip")
        member.size = len(spool.getvalue())
        tar.addfile(member, io.BytesIO(spool.getvalue()))
    assert zipfile.is_zipfile(path)
    assert [item.path for item in archive.members(path, "/opt", 0)] == ["/opt/kit.zip"]


def test_an_archive_that_is_not_at_hand_is_not_called_kept() -> None:
    item = component("x", "1.0", ArchiveSource("a", "a", "/opt/x", 1, None, "none"))
    assert probe_name(item) == "archive"
    assert not find(item).probed


def test_links_in_archives_are_compared_by_target_and_hard_links_by_content(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as tar:
        member = tarfile.TarInfo("v/lib.so.1")
        member.size = 5
        tar.addfile(member, io.BytesIO(b"hello"))
        for name, kind, target in (
            ("v/lib.so", tarfile.SYMTYPE, "lib.so.1"),
            ("v/same", tarfile.LNKTYPE, "v/lib.so.1"),
        ):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, target
            tar.addfile(member)
    found = {item.path: (item.sha256, item.link) for item in archive.members(path, "/opt", 1)}
    assert found == {"/opt/lib.so.1": (HELLO, None), "/opt/lib.so": (None, "lib.so.1"), "/opt/same": (HELLO, None)}


def test_a_damaged_archive_is_an_error_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "bad").write_bytes(b"x" * 100)
    with pytest.raises(ArtifactError, match="cannot be read"):
        archive.members(tmp_path / "bad", "/", 0)
