from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lj_image.builders import bootstrap as module
from lj_image.builders.bootstrap import bootstrap, diff_id, load, normalise
from lj_image.catalog.release import BootstrapRecipe
from lj_image.errors import BuildError, EngineError

EPOCH = 1735689600
RECIPE = BootstrapRecipe("base-os", "bookworm", "amd64", ("python3",), EPOCH, (("PIP_BREAK_SYSTEM_PACKAGES", "1"),))


def entry(name: str, content: bytes = b"", **fields: Any) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    member.mtime = EPOCH + 100
    for field, value in fields.items():
        setattr(member, field, value)
    return member, content


def directory(name: str) -> tuple[tarfile.TarInfo, bytes]:
    return entry(name, type=tarfile.DIRTYPE, mode=0o755)


def pack(path: Path, *entries: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        for member, content in entries:
            tar.addfile(member, io.BytesIO(content))
    return path


def normalised(tmp_path: Path, *entries: tuple[tarfile.TarInfo, bytes]) -> list[tarfile.TarInfo]:
    normalise(pack(tmp_path / "raw.tar", *entries), tmp_path / "tidy.tar", EPOCH)
    with tarfile.open(tmp_path / "tidy.tar") as tar:
        return tar.getmembers()


class FakeEngine:
    """An image store that reads what is loaded as an engine would."""

    def __init__(self, refusal: str | None = None) -> None:
        self.refusal = refusal
        self.found: dict[str, dict[str, Any]] = {}
        self.files: dict[str, bytes] = {}
        self.loads = 0

    def images(self, name: str | None = None) -> list[dict[str, Any]]:
        return [{"Id": name}] if name in self.found else []

    def inspect_image(self, image: str) -> dict[str, Any]:
        return self.found[image]

    def load_image(self, data: Iterable[bytes]) -> Iterable[dict[str, Any]]:
        self.loads += 1
        if self.refusal:
            return [{"errorDetail": {"message": self.refusal}, "error": self.refusal}]
        with tarfile.open(fileobj=io.BytesIO(b"".join(data))) as tar:
            self.files = {member.name: self.content(tar, member) for member in tar}
        [manifest] = json.loads(self.files["manifest.json"])
        config_bytes = self.files[manifest["Config"]]
        config = json.loads(config_bytes)
        self.found[manifest["RepoTags"][0]] = {
            "Id": f"sha256:{hashlib.sha256(config_bytes).hexdigest()}",
            "RootFS": {"Layers": config["rootfs"]["diff_ids"]},
            "Config": config["config"],
        }
        return [{"stream": "Loaded image"}]

    @staticmethod
    def content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
        file = tar.extractfile(member)
        assert file is not None
        return file.read()


def test_digest_changes_with_each_input_of_the_root_file_system() -> None:
    variations = [
        replace(RECIPE, suite="trixie"),
        replace(RECIPE, architecture="arm64"),
        replace(RECIPE, include=("python3", "git")),
        replace(RECIPE, source_date_epoch=EPOCH + 1),
    ]
    assert len({RECIPE.digest(), *(recipe.digest() for recipe in variations)}) == 5


def test_digest_does_not_depend_on_what_only_the_image_holds() -> None:
    assert replace(RECIPE, name="other", env=()).digest() == RECIPE.digest()


def test_reference_names_image_suite_and_inputs() -> None:
    assert RECIPE.reference() == f"lj-image/base-os:bookworm-{RECIPE.digest()[:12]}"


def test_members_are_sorted_with_folders_before_their_contents(tmp_path: Path) -> None:
    members = normalised(tmp_path, directory("./a-b"), entry("./a/z"), directory("./a"), directory("./"))
    assert [member.name for member in members] == ["a", "a/z", "a-b"]


def test_what_differs_from_machine_to_machine_does_not_reach_the_bytes(tmp_path: Path) -> None:
    normalise(pack(tmp_path / "1.tar", entry("f", b"x", uname="root", gname="root")), tmp_path / "1", EPOCH)
    normalise(pack(tmp_path / "2.tar", entry("./f", b"x", mtime=EPOCH + 0.25)), tmp_path / "2", EPOCH)
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


def test_times_are_clamped_and_older_ones_kept(tmp_path: Path) -> None:
    members = normalised(tmp_path, entry("new"), entry("old", mtime=5))
    assert [member.mtime for member in members] == [EPOCH, 5]


def test_owner_mode_link_and_file_capability_are_kept(tmp_path: Path) -> None:
    attribute = {"SCHILY.xattr.security.capability": "\x01\x00"}
    ping, su, link = normalised(
        tmp_path,
        entry("bin/ping", b"p", pax_headers=attribute),
        entry("bin/su", b"s", mode=0o4755, uid=1, gid=42),
        entry("lib", type=tarfile.SYMTYPE, linkname="usr/lib"),
    )
    assert (ping.pax_headers, su.mode, su.uid, su.gid, link.linkname) == (attribute, 0o4755, 1, 42, "usr/lib")


@pytest.mark.parametrize(
    "litter",
    [
        "dev/null",
        "etc/hostname",
        "etc/machine-id",
        "etc/resolv.conf",
        "etc/shadow-",
        "tmp/x/y",
        "var/cache/apt/pkgcache.bin",
        "var/cache/debconf/config.dat-old",
        "var/cache/ldconfig/aux-cache",
        "var/lib/apt/lists/mirror.example_InRelease",
        "var/lib/dpkg/status-old",
        "var/log/dpkg.log",
    ],
)
def test_litter_is_left_out(tmp_path: Path, litter: str) -> None:
    assert normalised(tmp_path, entry(litter)) == []


@pytest.mark.parametrize(
    "kept", ["etc/alternatives/README-", "etc/skel/.bashrc", "usr/share/log-", "var/cache/debconf/config.dat"]
)
def test_what_only_looks_like_litter_stays(tmp_path: Path, kept: str) -> None:
    assert [member.name for member in normalised(tmp_path, entry(kept))] == [kept]


def test_emptied_folders_stay(tmp_path: Path) -> None:
    assert [member.name for member in normalised(tmp_path, directory("var/log"), directory("var/log/apt"))] == [
        "var/log",
        "var/log/apt",
    ]


def test_content_of_hard_links_comes_with_the_first_of_them_in_order(tmp_path: Path) -> None:
    first, second = normalised(
        tmp_path,
        entry("./usr/bin/perl5.36", b"perl", mode=0o755),
        entry("./usr/bin/perl", type=tarfile.LNKTYPE, linkname="./usr/bin/perl5.36", mode=0o755),
    )
    assert (first.name, first.isreg(), first.size) == ("usr/bin/perl", True, 4)
    assert (second.name, second.islnk(), second.linkname) == ("usr/bin/perl5.36", True, "usr/bin/perl")
    with tarfile.open(tmp_path / "tidy.tar") as tar:
        assert FakeEngine.content(tar, tar.getmember("usr/bin/perl5.36")) == b"perl"


def test_a_root_file_system_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def make(recipe: BootstrapRecipe, raw: Path, log: module.Log) -> None:
        made.append(recipe)
        pack(raw, entry("etc/debian_version", b"12\n"))

    monkeypatch.setattr(module, "_tool", lambda: make)
    first, second = (bootstrap(RECIPE, tmp_path, log=print) for _ in range(2))
    assert first == second == tmp_path / "bases" / f"{RECIPE.digest()}.tar"
    assert made == [RECIPE]


def test_a_failed_making_leaves_nothing_and_shows_the_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "bin" / "mmdebstrap"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho half a tar\necho E: no such suite >&2\nexit 25\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")
    said: list[str] = []
    with pytest.raises(BuildError, match=r"(?s)exit code 25.*E: no such suite"):
        bootstrap(RECIPE, tmp_path, log=said.append)
    assert said[-1] == "E: no such suite"
    assert [path.suffix for path in (tmp_path / "bases").iterdir()] in ([], [".lock"])


def test_without_any_tool_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    with pytest.raises(BuildError) as caught:
        bootstrap(RECIPE, tmp_path, log=print)
    assert caught.value.hint == "run: apt-get install mmdebstrap"


def test_an_image_is_loaded_once_and_its_id_is_the_digest_of_its_config(tmp_path: Path) -> None:
    engine, rootfs = FakeEngine(), pack(tmp_path / "rootfs.tar", entry("etc/debian_version", b"12\n"))
    first, second = (load(engine, RECIPE, rootfs) for _ in range(2))
    assert first == second
    assert engine.loads == 1
    [layer] = [name for name in engine.files if name.endswith(".tar")]
    assert engine.files[layer] == rootfs.read_bytes()


def test_an_older_image_under_the_same_name_is_replaced(tmp_path: Path) -> None:
    engine = FakeEngine()
    old = load(engine, RECIPE, pack(tmp_path / "old.tar", entry("a")))
    new = load(engine, RECIPE, pack(tmp_path / "new.tar", entry("b")))
    assert (old != new, engine.loads) == (True, 2)


def test_image_has_path_then_the_recipes_environment_and_the_recipes_time(tmp_path: Path) -> None:
    engine = FakeEngine()
    load(engine, RECIPE, pack(tmp_path / "rootfs.tar"))
    [config] = [json.loads(content) for name, content in engine.files.items() if len(name) == 69]
    assert config["config"]["Env"] == [f"PATH={module.PATH}", "PIP_BREAK_SYSTEM_PACKAGES=1"]
    assert config["created"] == "2025-01-01T00:00:00Z"


def test_refusal_of_the_engine_is_told_in_its_words(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="no space left on device"):
        load(FakeEngine(refusal="no space left on device"), RECIPE, pack(tmp_path / "rootfs.tar"))


def test_unreachable_engine_is_an_engine_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = FakeEngine()
    monkeypatch.setattr(engine, "images", lambda name: (_ for _ in ()).throw(ConnectionRefusedError("refused")))
    with pytest.raises(EngineError, match="refused"):
        load(engine, RECIPE, pack(tmp_path / "rootfs.tar"))


def test_the_digest_of_a_root_file_system_follows_its_bytes(tmp_path: Path) -> None:
    rootfs = tmp_path / "base.tar"
    rootfs.write_bytes(b"one")
    first = diff_id(rootfs)
    assert first == diff_id(rootfs) == "sha256:7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"
    rootfs.write_bytes(b"two")
    assert diff_id(rootfs) == "sha256:3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3"
