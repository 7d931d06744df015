"""`lj-image compare` as it is typed, on archives; no engine is asked."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lj_image.builders.docker import engine
from lj_image.catalog.catalog import Catalog
from lj_image.cli import run
from lj_image.errors import EngineError
from lj_image.release.record import Built, Record, Records
from unit.release.compare.compare_layers import entry, layer
from unit.release.diff.diff_archives import digest, docker_save, oci_files, oci_folder, oci_tar

BASE = layer(entry("etc", kind="folder"), entry("etc/os", b"Debian\n"))
APP = layer(entry("srv", kind="folder"), entry("srv/a", b"1"), entry("x-1.dist-info/INSTALLER", b"pip\n"))
APP_2 = layer(entry("srv", kind="folder"), entry("srv/a", b"2", mode=0o755), entry("x-1.dist-info/INSTALLER", b"uv\n"))
INSTALLED = layer(entry("x-1.dist-info", kind="folder"), entry("x-1.dist-info/INSTALLER", b"pip\n"))
INSTALLED_2 = layer(entry("x-1.dist-info", kind="folder"), entry("x-1.dist-info/INSTALLER", b"uv\n"))


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> object:
        raise EngineError("no engine answers")

    monkeypatch.setattr(engine, "connect", none)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("LJ_IMAGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("LJ_IMAGE_CONFIG", raising=False)


@pytest.fixture
def archive(tmp_path: Path) -> Callable[..., str]:
    """Return what writes an archive of layers, and returns its path."""

    def write(name: str, *layers: bytes) -> str:
        return str(docker_save(tmp_path / f"{name}.tar", layers))

    return write


def last_line(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out.splitlines()[-1]


def test_archives_of_different_forms_hold_the_same(
    archive: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = oci_files({"amd64": ([BASE, INSTALLED], {})})
    folder, tar = oci_folder(tmp_path / "layout", files), oci_tar(tmp_path / "layout.tar", files)
    saved = archive("saved", BASE, INSTALLED)
    for one, other in ((saved, folder), (folder, tar), (tar, saved)):
        assert run(["compare", str(one), str(other)]) == 0
        assert last_line(capsys) == "same: all 2 shared layers"
        assert run(["compare", str(one), str(other), "--fresh"]) == 0
        assert last_line(capsys) == "same: 4 paths"


def test_what_differs_is_grouped_and_what_is_expected_is_apart(
    archive: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", archive("a", BASE, APP), archive("b", BASE, APP_2)]) == 1
    shown = capsys.readouterr().out.splitlines()
    at = shown.index("1 path with another mode")
    assert [line.split() for line in shown[at + 1 : at + 3]] == [["PATH", "A", "B"], ["/srv/a", "0644", "0755"]]
    assert "1 expected difference" in shown
    assert shown[-1] == ("different: 4 paths above 1 shared layer, 2 differences, 1 expected difference (1 INSTALLER)")


def test_only_expected_differences_are_none(archive: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    pair = archive("a", BASE, INSTALLED), archive("b", BASE, INSTALLED_2)
    assert run(["compare", *pair]) == 0
    assert last_line(capsys) == "same: 2 paths above 1 shared layer, 1 expected difference (1 INSTALLER)"
    assert run(["compare", *pair, "--all"]) == 0
    assert "/x-1.dist-info/INSTALLER  content" in capsys.readouterr().out
    assert run(["compare", *pair, "--strict"]) == 1
    assert last_line(capsys) == "different: 2 paths above 1 shared layer, 1 difference"


def test_what_is_ignored_does_not_count(archive: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", archive("a", BASE, APP), archive("b", BASE, APP_2), "--ignore", "srv/*"]) == 0
    assert last_line(capsys).endswith("3 expected differences (2 --ignore srv/*, 1 INSTALLER)")


def test_json_has_everything(archive: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", archive("a", BASE, APP), archive("b", BASE, APP_2), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["same"], found["counted"], found["expected"], found["paths"]) == (False, 2, 1, 4)
    assert [(item["path"], item["aspect"]) for item in found["differences"]] == [
        ("srv/a", "mode"),
        ("srv/a", "content"),
        ("x-1.dist-info/INSTALLER", "content"),
    ]
    assert found["differences"][2]["excuse"]["title"] == "INSTALLER"


def test_long_tables_are_cut_unless_asked(archive: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    many = layer(*(entry(f"f{number:03}", b"1") for number in range(50)))
    pair = archive("a", BASE), archive("b", BASE, many)
    assert run(["compare", *pair]) == 1
    assert "… and 30 more; --all shows them" in capsys.readouterr().out
    assert run(["compare", *pair, "--all"]) == 1
    assert "/f049 " in capsys.readouterr().out


def test_settings_are_told_apart_from_paths(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = [str(docker_save(tmp_path / f"{value}.tar", [BASE], {"team": value})) for value in ("a", "b")]
    assert run(["compare", *pair]) == 1
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "1 setting of the configuration"
    assert shown[2].split() == ["label", "team", "a", "b"]


def test_a_path_twice_is_noted_and_fails_only_if_strict(
    archive: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    pair = archive("a", layer(entry("a", b"1"))), archive("b", layer(entry("a", b"0"), entry("a", b"1")))
    assert run(["compare", *pair]) == 0
    shown = capsys.readouterr().out
    assert "twice in one layer" in shown
    assert shown.splitlines()[-1] == "same: 1 path, 1 noted"
    assert run(["compare", *pair, "--strict"]) == 1


def test_a_platform_chooses_among_several(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = oci_folder(tmp_path / "both", oci_files({"amd64": ([BASE], {}), "arm64": ([BASE, APP], {})}))
    one = oci_folder(tmp_path / "one", oci_files({"arm64": ([BASE, APP], {})}))
    assert run(["compare", str(both), str(one), "--platform", "linux/arm64"]) == 0
    assert run(["compare", str(both), str(one)]) == 1
    assert "platform  linux/amd64  linux/arm64" in capsys.readouterr().out
    assert run(["compare", str(both), str(one), "--platform", "linux/s390x"]) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gone.tar", "gone.tar"), "no file gone.tar"),
        (("", "x:1"), "nothing is named"),
        (("25.02@main", "x:1"), "25.02@main is a release at a revision"),
    ],
)
def test_a_wrong_argument_ends_with_2_and_a_way_out(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", *arguments]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert "an image of the engine (name:tag" in shown.err or "a release (25.02" in shown.err
    assert shown.out == ""


def test_an_image_needs_an_engine(archive: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", archive("a", BASE), "team/image:1"]) == 1
    assert "no engine answers" in capsys.readouterr().err


def test_a_release_that_was_not_built_is_told(
    write_catalog: Callable[..., Catalog], archive: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    root = str(write_catalog().root)
    assert run(["--images", root, "compare", "25.02", archive("a", BASE), "--variant", "open"]) == 1
    assert "has not been built on this machine" in capsys.readouterr().err
    assert run(["--images", root, "compare", "25.99", archive("a", BASE)]) == 2


def assembled(cache: Path, *layers: bytes) -> None:
    """Leave behind what a build without an engine does: blobs in the cache, and a record."""
    files = oci_files({"amd64": (layers, {})})
    oci_folder(cache / "oci", files)
    manifest = json.loads(files["index.json"])["manifests"][0]["digest"]
    built = Built(digest(b"1"), "tiny:25.02", "", "", "", "oci", "", "2025-03-01T00:00:00Z", 1.0, 1, manifest=manifest)
    Records(cache, "tiny").update("25.02-open", lambda _: Record("tiny", "25.02", "open", built))


def test_a_release_is_what_was_assembled_of_it_without_an_engine(
    write_catalog: Callable[..., Catalog], archive: Callable[..., str], tmp_path: Path
) -> None:
    root = str(write_catalog().root)
    assembled(tmp_path / "cache", BASE, INSTALLED)
    command = ["--images", root, "compare", "25.02", "--variant", "open"]
    assert run([*command, archive("a", BASE, INSTALLED), "--fresh"]) == 0
    assert run([*command, archive("b", BASE, APP)]) == 1


def test_an_assembled_image_that_is_damaged_is_told(
    write_catalog: Callable[..., Catalog],
    archive: Callable[..., str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    root = str(write_catalog().root)
    assembled(tmp_path / "cache", BASE, INSTALLED)
    command = ["--images", root, "compare", "25.02", "--variant", "open", archive("a", BASE), "--fresh"]
    layers = [blob for blob in (tmp_path / "cache/oci/blobs/sha256").iterdir() if blob.read_bytes()[:2] == b"\x1f\x8b"]
    layers[0].write_bytes(layers[1].read_bytes())
    assert run(command) == 1
    assert "has another digest" in capsys.readouterr().err
    layers[0].unlink()
    layers[1].unlink()
    assert run(command) == 1
    assert "is missing" in capsys.readouterr().err


@pytest.mark.parametrize("damage", ["cut", "another layer", "another blob", "no tar"])
def test_a_damaged_archive_is_told(
    damage: str, archive: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = archive("good", BASE, APP)
    bad = Path(archive("bad", BASE, APP_2))
    if damage == "cut":
        bad.write_bytes(bad.read_bytes()[:20_000])
    elif damage == "another layer":
        bad.write_bytes(bad.read_bytes().replace(b"Debian\n", b"Ubuntu\n"))
    else:
        files = oci_files({"amd64": ([BASE, APP_2], {})}, compress=lambda tar: gzip.compress(tar, mtime=0))
        name = max((name for name in files if "blobs" in name), key=lambda name: files[name].startswith(b"\x1f\x8b"))
        files[name] = gzip.compress(b"{}" * 900) if damage == "no tar" else files[name] + b"\0"
        bad = oci_folder(tmp_path / "bad", files)
    assert run(["compare", good, str(bad), "--fresh"]) == 1
    shown = capsys.readouterr()
    assert "is damaged" in shown.err or "another digest" in shown.err
    assert shown.out == ""
