"""What people get wrong, through the command line: a message with its place, exit code 2, and nothing changed."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lj_image.catalog.catalog import Catalog
from lj_image.cli import run
from samples.tiny import BASE, IMAGE, RELEASE
from unit.lock.loopback import Loopback, start

Write = Callable[..., Catalog]
PLACE = re.compile(r"at \S+\.yaml:\d+:\d+$", re.MULTILINE)
COMMANDS = (["show", "25.02"], ["plan", "25.02"], ["lock", "25.02"], ["build", "25.02"], ["verify", "25.02"])
PUSH = ["push", "25.02", "--public"]


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("LJ_IMAGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine.sock")
    monkeypatch.delenv("LJ_IMAGE_CONFIG", raising=False)


def snapshot(folder: Path) -> dict[str, str]:
    """Return the digest of each file below a folder."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


RELEASE_FAULTS = {
    "not YAML": RELEASE + "  tool: [1\n",
    "tab": RELEASE + "\tray: 1\n",
    "key twice": RELEASE + '  kit: "12.9"\n',
    "a list": "- 25.02\n",
    "empty": "",
    "number as release": RELEASE.replace('"25.02"', "25.02"),
    "number as version": RELEASE.replace('"12.8"', "12.8"),
    "number as previous": 'release: "25.02"\nprevious: 25.01\n',
    "unknown key": RELEASE + "highlight: [x]\n",
    "unknown component": RELEASE + "  tol: 1.2.3\n",
    "same component twice": RELEASE + "  the_tool: 1.4.2\n",
    "other name": RELEASE.replace('"25.02"', '"25.03"'),
    "previous that is none": 'release: "25.02"\nprevious: "25.01"\n',
    "its own previous": 'release: "25.02"\nprevious: "25.02"\n',
    "version with a space": RELEASE.replace("1.4.2+ali", '"1.4.2 ali"'),
    "version of nothing": RELEASE.replace("1.4.2+ali", ""),
}


@pytest.mark.parametrize("fault", RELEASE_FAULTS)
def test_a_fault_in_a_release_stops_every_command_before_it_does_anything(
    write_catalog: Write, capsys: pytest.CaptureFixture[str], fault: str
) -> None:
    catalog = write_catalog(r25_02=RELEASE_FAULTS[fault])
    before = snapshot(catalog.root.parent)
    for command in (*COMMANDS, PUSH):
        assert run(["--images", str(catalog.root), *command]) == 2, command
        said = capsys.readouterr()
        assert said.out == ""
        assert PLACE.search(said.err), said.err
        assert "Traceback" not in said.err
    assert snapshot(catalog.root.parent) == before


IMAGE_FAULTS = {
    "unknown kind": IMAGE.replace("kind: pip, overrides", "kind: pipp, overrides").replace("kind: pip", "kind: pipp"),
    "unknown key": IMAGE.replace("title: Tiny", "titel: Tiny"),
    "tag of an unknown component": IMAGE.replace('"{release}-', '"{releas}-'),
    "no region in the host": IMAGE.replace("{region}", "region"),
    "name of another folder": IMAGE.replace("image: tiny", "image: tinny"),
}


@pytest.mark.parametrize("fault", IMAGE_FAULTS)
def test_a_fault_in_the_family_stops_every_command_before_it_does_anything(
    write_catalog: Write, capsys: pytest.CaptureFixture[str], fault: str
) -> None:
    assert IMAGE_FAULTS[fault] != IMAGE
    catalog = write_catalog(image=IMAGE_FAULTS[fault])
    before = snapshot(catalog.root.parent)
    for command in (*COMMANDS, PUSH):
        assert run(["--images", str(catalog.root), *command, "--variant", "open"]) == 2, command
        said = capsys.readouterr()
        assert PLACE.search(said.err), said.err
        assert "Traceback" not in said.err
    assert snapshot(catalog.root.parent) == before


@pytest.mark.parametrize(
    ("base", "message"),
    [
        (BASE + "packages: {}\n", "packages"),
        (BASE.replace("python: 3.11.2", "python: 3.11"), "python"),
        (BASE.replace('glibc: "2.36"', "glibc: 2.36"), "glibc"),
    ],
)
def test_a_fault_in_the_facts_of_a_base_is_told_with_its_place(
    write_catalog: Write, capsys: pytest.CaptureFixture[str], base: str, message: str
) -> None:
    catalog = write_catalog(base=base)
    assert run(["--images", str(catalog.root), "show", "25.02", "--variant", "open"]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert PLACE.search(said), said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("indexes: {vendor: {url: ftp://host/simple}}", "url"),
        ("indexes: {vendor: {url: https://me:word@host/simple}}", "url"),
        ("indexes: {vendor: {url: https://host/simple, username: me}}", "password"),
        ("index: {}", "unknown key"),
        ("build: {network: bridge}", "network"),
        ("variant: 25.02", "variant"),
        ("endpoints: {rewrite: [a, b]}", "rewrite"),
    ],
)
def test_a_fault_in_the_config_is_told_with_its_place_and_without_a_password(
    write_catalog: Write,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    message: str,
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(text + "\n")
    monkeypatch.setenv("LJ_IMAGE_CONFIG", str(config))
    assert run(["--images", str(write_catalog().root), "show", "25.02"]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert PLACE.search(said), said
    assert "word@" not in said


def test_a_component_without_a_source_in_the_variant_is_refused_by_every_command(
    write_catalog: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    only_vendor = "  gadget:\n    title: Gadget\n    sources:\n      vendor: {kind: base}\n"
    catalog = write_catalog(image=IMAGE + only_vendor, r25_02=RELEASE + "  gadget: 3\n".replace("3", '"3"'))
    for command in (*COMMANDS, PUSH):
        assert run(["--images", str(catalog.root), *command, "--variant", "open"]) == 2
        said = capsys.readouterr().err
        assert "component 'gadget' has no source in the variant 'open'" in said
        assert PLACE.search(said), said


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Loopback]:
    """Return the index that the config of a test calls `pypi`."""
    loopback = Loopback()
    server = start(loopback)
    config = tmp_path / "config.yaml"
    config.write_text(f"indexes: {{pypi: {{url: {loopback.simple}}}}}\n")
    monkeypatch.setenv("LJ_IMAGE_CONFIG", str(config))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    yield loopback
    server.shutdown()
    server.server_close()


def offer(index: Loopback, *names: str) -> None:
    versions = {"kit-core": "12.8.57", "kit-extra": "12.8.61", "tool": "1.4.2", "lib-open": "2.23.4"}
    for name in names or versions:
        index.offer(name, versions[name])


def test_a_version_that_no_index_has_leaves_the_old_lock_alone(
    write_catalog: Write, index: Loopback, capsys: pytest.CaptureFixture[str]
) -> None:
    catalog = write_catalog()
    select = ["--images", str(catalog.root), "lock", "25.02", "--variant", "open"]
    offer(index)
    assert run(select) == 0
    before = snapshot(catalog.root)
    release = catalog.root / "tiny/releases/25.02.yaml"
    release.write_text(RELEASE.replace("1.4.2+ali", "1.4.9+ali"))
    capsys.readouterr()
    assert run(select) == 1
    said = capsys.readouterr().err
    assert "component tool: the index 'pypi' has no tool==1.4.9" in said
    assert "1.4.2" in said
    release.write_text(RELEASE)
    assert snapshot(catalog.root) == before


def test_a_lock_that_was_edited_is_refused_wherever_it_is_read(
    write_catalog: Write, index: Loopback, capsys: pytest.CaptureFixture[str]
) -> None:
    catalog = write_catalog()
    images = ["--images", str(catalog.root)]
    select = ["25.02", "--variant", "open"]
    offer(index)
    assert run([*images, "lock", *select]) == 0
    lock = catalog.root / "tiny/locks/25.02-open.txt"
    good = lock.read_text()
    for edited in (good.replace("tool==1.4.2 ", "tool==1.4.3 "), good + "\n", good[: len(good) // 2], "", "\0"):
        lock.write_text(edited)
        capsys.readouterr()
        for command in (["plan", *select], ["fetch", *select], ["build", *select], ["render", *select]):
            assert run([*images, *command]) == 2, command
            said = capsys.readouterr().err
            assert re.search(r"25\.02-open\.txt:\d+$", said, re.MULTILINE), said
            assert "run: lj-image lock 25.02 --variant open" in said
        assert lock.read_text() == edited
        assert run([*images, "lock", *select, "--check"]) == 2
    capsys.readouterr()
    assert run([*images, "lock", *select, "--check", "--json"]) == 2
    assert [item["fresh"] for item in json.loads(capsys.readouterr().out)] == [False]
    assert run([*images, "lock", *select, "--json"]) == 0  # the command that every message names mends it
    (made,) = json.loads(capsys.readouterr().out)
    assert (made["image"], made["key"], made["path"], made["files"]) == ("tiny", "25.02-open", str(lock), 4)
    assert lock.read_text() == good
    assert run([*images, "lock", *select, "--check", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["fresh"], found["finding"]) == (True, None)


@pytest.mark.parametrize(
    "command",
    [["build", "25.02", "--variant", "open", "--builder", "docker"], ["push", "25.02", "--public", "--via-engine"]],
)
def test_without_an_engine_the_address_and_the_way_out_are_told(
    write_catalog: Write, index: Loopback, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    catalog = write_catalog()
    offer(index)
    assert run(["--images", str(catalog.root), "lock", "25.02", "--variant", "open"]) == 0
    capsys.readouterr()
    assert run(["--images", str(catalog.root), *command]) == 1
    said = capsys.readouterr().err
    assert "no-engine.sock" in said
    assert "start the engine, or set DOCKER_HOST" in said


def test_an_unknown_base_can_be_asked_as_its_message_says(
    write_catalog: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    catalog = write_catalog()
    (catalog.root / "tiny/bases/base.yaml").unlink()
    images = ["--images", str(catalog.root)]
    assert run([*images, "plan", "25.02", "--variant", "open"]) == 2
    assert "lj-image base RELEASE --variant VARIANT" in capsys.readouterr().err
    assert run([*images, "base", "25.02", "--variant", "open"]) == 1
    assert "no engine answers" in capsys.readouterr().err  # so it came as far as asking
