"""One layer's tar: every field of every entry, and what engines do not agree on."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from compare_layers import entry, files, layer, scanned

from lj_image.oci.tars import NotATarError
from lj_image.release.compare.memory import TreeMemory
from lj_image.release.compare.scan import scan_layer
from lj_image.release.compare.tree import Fact
from unit.release.diff.diff_archives import digest

RECORD = "usr/lib/python3.11/site-packages/six-1.dist-info/RECORD"
EVERY_KIND = layer(
    entry("./", kind="folder"),
    entry("./d", kind="folder", mode=0o1777, uid=1000, gid=50),
    entry("d/f", b"hello\n", mode=0o4755, uid=3_000_000, gid=7, xattrs={"user.note": "ü", "security.capability": "\1"}),
    entry("d/l", kind="link", linkname="../f", mode=0o644, uid=5),
    entry("d/h", kind="hard", linkname="./d/f", mode=0o4755, uid=3_000_000, gid=7),
    entry("c", kind="device", mode=0o600, devmajor=1, devminor=3),
    entry("b", kind="block", mode=0o600, devmajor=8, devminor=1),
    entry("p", kind="fifo", mode=0o600),
    entry(RECORD, b"six.py,sha256=x,1\n"),
)


def test_every_field_of_an_entry_is_read() -> None:
    facts = scanned(EVERY_KIND).facts
    hello = hashlib.sha256(b"hello\n").hexdigest()
    xattrs = (("security.capability", "01"), ("user.note", "c3bc"))
    assert facts["d"] == Fact("folder", 0o1777, 1000, 50)
    assert facts["d/f"] == facts["d/h"] == Fact("file", 0o4755, 3_000_000, 7, 6, hello, xattrs)
    assert facts["d/l"] == Fact("symlink", 0o777, 5, 0, 0, "../f")
    assert (facts["c"], facts["b"]) == (
        Fact("character device", 0o600, content="1:3"),
        Fact("block device", 0o600, content="8:1"),
    )
    assert facts["p"] == Fact("fifo", 0o600)
    assert facts["usr/lib"].is_implied


@pytest.mark.parametrize("packed", [bytes, gzip.compress])
def test_a_layer_is_known_by_its_tar_whether_compressed_or_not(packed) -> None:  # type: ignore[no-untyped-def]
    assert scan_layer(io.BytesIO(packed(EVERY_KIND))) == (digest(EVERY_KIND), scanned(EVERY_KIND))


def test_a_path_twice_is_told_and_the_last_one_counts() -> None:
    tree = scanned(layer(entry("a", b"1"), entry("a", b"22")))
    assert tree.facts["a"].size_bytes == 2
    assert [(item.path, item.what.split(";")[0]) for item in tree.oddities] == [("a", "twice in one layer")]


def test_a_folder_that_becomes_a_file_in_one_layer_loses_what_was_in_it() -> None:
    assert sorted(scanned(layer(entry("a/b", b"1"), entry("a", b"2"))).facts) == ["", "a"]


def test_a_hard_link_that_claims_to_be_another_file_is_told() -> None:
    tree = scanned(layer(entry("a", b"1"), entry("b", kind="hard", linkname="a", mode=0o755)))
    assert tree.facts["b"].mode == 0o644
    assert [(item.path, item.what.split(";")[0]) for item in tree.oddities] == [
        ("b", "a hard link with another mode or owner than a")
    ]


def test_something_below_a_link_of_the_same_layer_is_told() -> None:
    tree = scanned(layer(entry("lib", kind="link", linkname="usr/lib"), entry("lib/x", b"1")))
    assert [(item.path, item.what) for item in tree.oddities] == [
        ("lib/x", "below lib, which is a symlink in the same layer")
    ]


@pytest.mark.parametrize("name", ["../etc/passwd", "a/../../etc/passwd", "/../etc/passwd"])
def test_a_name_that_leaves_the_root_stays_inside_and_is_told(name: str) -> None:
    tree = scanned(layer(entry(name, b"1")))
    assert "etc/passwd" in tree.facts
    assert "a name with `..`" in tree.oddities[0].what


@pytest.mark.parametrize("name", ["a//b", "./a/b", "/a/b", "a/./b"])
def test_a_path_has_one_name(name: str) -> None:
    assert set(scanned(layer(entry(name, b"1"))).facts) == {"", "a", "a/b"}


def test_a_name_that_is_no_text_can_be_shown() -> None:
    tree = scanned(layer(entry(b"caf\xe9".decode(errors="surrogateescape"), b"1")))
    assert "caf\\xe9" in tree.facts


@pytest.mark.parametrize("content", [b"{}" * 600, b"x" * 100, EVERY_KIND[:700]])
def test_what_is_no_tar_is_refused(content: bytes) -> None:
    with pytest.raises(NotATarError):
        scan_layer(io.BytesIO(content))


def test_what_is_remembered_is_what_was_scanned(tmp_path: Path) -> None:
    tree = scanned(layer(*[entry("a/x", b"1"), entry("a/x", b"1"), entry(".wh.gone"), entry("e/.wh..wh..opq")]))
    for diff_id, found in ((digest(b"1"), tree), (digest(EVERY_KIND), scanned(EVERY_KIND))):
        TreeMemory(tmp_path).write(diff_id, found)
        again = TreeMemory(tmp_path).read(diff_id)
        assert again == found
        assert again is not None
        assert {path: fact.text for path, fact in again.facts.items()} == {
            path: fact.text for path, fact in found.facts.items()
        }


@pytest.mark.parametrize("damage", ["", "{}", "[]", json.dumps({"facts": {"a": [1]}, "texts": {}})])
def test_a_damaged_memory_is_as_good_as_none(damage: str, tmp_path: Path) -> None:
    memory = TreeMemory(tmp_path)
    memory.write(digest(b"1"), scanned(files("a")))
    (written,) = (tmp_path / "trees").iterdir()
    written.write_text(damage)
    assert memory.read(digest(b"1")) is None


def test_where_nothing_can_be_kept_nothing_is(tmp_path: Path) -> None:
    (tmp_path / "trees").write_text("in the way")
    TreeMemory(tmp_path).write(digest(b"1"), scanned(files("a")))
    assert TreeMemory(tmp_path).read(digest(b"1")) is None


def test_a_record_is_kept_and_nothing_else_is() -> None:
    kept = [path for path, fact in scanned(EVERY_KIND).facts.items() if fact.text is not None]
    assert kept == [RECORD]
    assert replace(scanned(EVERY_KIND).facts[RECORD], text=None) == scanned(EVERY_KIND).facts[RECORD]
