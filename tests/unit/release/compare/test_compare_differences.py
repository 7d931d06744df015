"""What counts as a difference, what is expected, and for which reason."""

from __future__ import annotations

from typing import Any

import pytest
from compare_layers import Made, compared, entry, files, layer, told

from lj_image.dockerfile import CONTEXT_MOUNT
from lj_image.release.compare.compare import compare
from lj_image.release.compare.expected import RULES
from lj_image.release.compare.settings import settings

SITE = "usr/lib/python3.11/site-packages"
INFO = f"{SITE}/six-1.dist-info"


def changed(kind: str = "file", **fields: Any) -> tuple[bytes, bytes]:
    return layer(entry("x", kind=kind)), layer(entry("x", kind=kind, **fields))


@pytest.mark.parametrize(
    ("before", "after", "aspects"),
    [
        (*changed(mode=0o600), ["mode"]),
        (*changed(mode=0o4644), ["mode"]),
        (*changed(uid=1), ["owner"]),
        (*changed(gid=1), ["owner"]),
        (*changed(content=b"x"), ["content"]),
        (*changed(xattrs={"user.a": "b"}), ["xattrs"]),
        (*changed("folder", mode=0o700), ["mode"]),
        (layer(entry("x", kind="link", linkname="a")), layer(entry("x", kind="link", linkname="b")), ["link target"]),
        (*changed("device", devminor=3), ["device"]),
        (layer(entry("x")), layer(entry("x", kind="fifo")), ["type"]),
        (layer(entry("x")), layer(entry("x", kind="link", linkname="a", uid=4)), ["type", "owner"]),
        (layer(entry("x")), layer(), ["only in A"]),
        (layer(), layer(entry("x")), ["only in B"]),
        (layer(entry("x", b"1", mode=0o700, uid=1)), layer(entry("x", b"2")), ["owner", "mode", "content"]),
    ],
)
def test_everything_that_a_container_sees_is_compared(before: bytes, after: bytes, aspects: list[str]) -> None:
    assert told(compared((before,), (after,))) == [("x", aspect) for aspect in aspects]


def test_times_owners_names_and_the_modes_of_links_are_not_compared() -> None:
    one = layer(entry("x", mtime=1, uname="root"), entry("l", kind="link", linkname="x", mode=0o777))
    other = layer(entry("x", mtime=2, gname="wheel"), entry("l", kind="link", linkname="x", mode=0o644))
    found = compared((one,), (other,))
    assert not found.differences
    assert not found.differ(strict=True)


def test_a_hard_link_is_equal_to_a_copy() -> None:
    linked = layer(entry("a", b"1"), entry("b", kind="hard", linkname="a"))
    assert told(compared((linked,), (files("a", "b"),))) == []


def test_how_a_tree_is_cut_into_layers_does_not_matter() -> None:
    whole = files("a/x", "b/y")
    assert told(compared((files("a/x"), files("b/y")), (whole,))) == []
    upper = layer(entry(".wh.gone"), entry("b", kind="folder"), entry("b/y", b"1"))
    assert told(compared((files("a/x", "gone"), upper), (whole,))) == []


def test_bytecode_is_expected_wherever_it_is() -> None:
    found = compared(
        (layer(entry("p/__pycache__", kind="folder"), entry("p/__pycache__/x.cpython-311.pyc", b"1")),),
        (layer(entry("p", kind="folder"), entry("p/__pycache__/y.pyc", b"2")),),
    )
    assert [item.path for item in found.differences] == ["p/__pycache__/x.cpython-311.pyc", "p/__pycache__/y.pyc"]
    assert {item.excuse.title for item in found.differences if item.excuse} == {"bytecode"}
    assert not found.differ()
    assert found.differ(strict=True)


def test_other_files_beside_bytecode_are_not_expected() -> None:
    pair = (layer(entry("p/__pycache__/x.so", b"1")),), (layer(entry("p/__pycache__/x.so", b"2")),)
    assert told(compared(*pair)) == [("p/__pycache__/x.so", "content")]


def test_the_folder_that_a_mount_leaves_is_expected_while_it_is_empty() -> None:
    mount = CONTEXT_MOUNT.strip("/")
    left = layer(entry("tmp", kind="folder"), entry(mount, kind="folder"))
    bare = layer(entry("tmp", kind="folder"))
    assert told(compared((left,), (bare,))) == []
    full = layer(entry("tmp", kind="folder"), entry(mount, kind="folder"), entry(f"{mount}/x.whl"))
    assert told(compared((full,), (bare,))) == [(f"{mount}/x.whl", "only in A")]


def recorded(installer: str, *rows: str) -> bytes:
    lines = [f"six-1.dist-info/INSTALLER,sha256={installer},4", "six-1.dist-info/RECORD,,", *rows]
    return layer(
        entry(f"{INFO}/INSTALLER", installer.encode()), entry(f"{INFO}/RECORD", "\n".join(lines).encode() + b"\n")
    )


def test_who_installed_is_expected_to_differ_and_so_is_its_row() -> None:
    found = compared(
        (recorded("pip", "six.py,sha256=a,1", "__pycache__/six.cpython-311.pyc,,"),),
        (recorded("uv", "six.py,sha256=a,1"),),
    )
    assert [(item.path, item.excuse.title if item.excuse else None) for item in found.differences] == [
        (f"{INFO}/INSTALLER", "INSTALLER"),
        (f"{INFO}/RECORD", "RECORD"),
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("a,sha256=1,1", "b,sha256=2,2"), ("b,sha256=2,2", "a,sha256=1,1")),
        (('"a,b",sha256=1,1',), ('"a,b",sha256=1,1', "x-1.dist-info/INSTALLER,sha256=9,9")),
    ],
)
def test_rows_are_compared_in_any_order(before: tuple[str, ...], after: tuple[str, ...]) -> None:
    assert told(compared((recorded("pip", *before),), (recorded("pip", *after),))) == []


def test_any_other_row_counts_and_is_shown() -> None:
    found = compared((recorded("pip", "six.py,sha256=a,1"),), (recorded("uv", "six.py,sha256=b,1", "new.py,,"),))
    (item,) = [item for item in found.differences if item.excuse is None]
    assert item.path == f"{INFO}/RECORD"
    assert item.before == "1 rows: six.py,sha256=a,1"
    assert item.after == "2 rows: new.py,, | six.py,sha256=b,1"


@pytest.mark.parametrize("text", [b"\xff\xfe", b'"' + b"a" * 200_000])
def test_a_record_that_is_no_table_is_compared_as_a_file(text: bytes) -> None:
    pair = [(layer(entry(f"{INFO}/RECORD", content)),) for content in (text, b"six.py,,\n")]
    assert told(compared(pair[0], pair[1])) == [(f"{INFO}/RECORD", "content")]


def test_another_mode_of_a_file_with_an_excuse_counts() -> None:
    pair = [(layer(entry(f"{INFO}/INSTALLER", b"pip", mode=mode)),) for mode in (0o644, 0o600)]
    assert told(compared(pair[0], pair[1])) == [(f"{INFO}/INSTALLER", "mode")]


@pytest.mark.parametrize(
    ("glob", "left"),
    [
        ("var/log", ["etc/a.conf", "etc/b"]),
        ("/var/log/", ["etc/a.conf", "etc/b"]),
        ("*.conf", ["etc/b", "var/log/x"]),
        ("etc/?", ["etc/a.conf", "var/log/x"]),
        ("etc", ["var/log/x"]),
        ("tc", ["etc/a.conf", "etc/b", "var/log/x"]),
    ],
)
def test_what_a_glob_names_is_expected(glob: str, left: list[str]) -> None:
    paths = ("etc/a.conf", "etc/b", "var/log/x")
    found = compare(Made((files(*paths),)), Made((files(*paths, content=b"2"),)), ignore=[glob])
    assert [path for path, _ in told(found)] == left


def test_every_rule_has_a_reason() -> None:
    assert all(len(rule.why.split()) > 3 and rule.title for rule in RULES)


CONFIG = {"Env": ["PATH=/bin", "A=1=2"], "Cmd": ["bash"], "WorkingDir": "/w", "Labels": {"a": "b"}}


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"Env": ["PATH=/bin", "A=2"]}, "env A"),
        ({"Env": ["PATH=/bin"]}, "env A"),
        ({"Cmd": ["bash", "-l"]}, "cmd"),
        ({"Entrypoint": ["/init"]}, "entrypoint"),
        ({"WorkingDir": "/"}, "workdir"),
        ({"User": "1000"}, "user"),
        ({"Labels": {"a": "c"}}, "label a"),
        ({"Labels": None}, "label a"),
        ({"ExposedPorts": {"80/tcp": {}}}, "exposed ports"),
        ({"StopSignal": "SIGINT"}, "stop signal"),
    ],
)
def test_a_setting_that_differs_is_named(changes: dict[str, object], name: str) -> None:
    found = settings({"os": "linux", "config": CONFIG}, {"os": "linux", "config": CONFIG | changes})
    assert [(item.name, item.excuse) for item in found] == [(name, None)]


def test_what_is_empty_is_as_good_as_not_set() -> None:
    empty = {"Entrypoint": None, "Volumes": {}, "User": "", "OnBuild": []}
    assert settings({"config": CONFIG | empty}, {"config": dict(reversed(CONFIG.items()))}) == ()
    assert settings({"config": CONFIG | {"Env": ["A=1=2", "PATH=/bin"]}}, {"config": CONFIG}) == ()
    assert settings({}, {"config": None}) == ()


def test_labels_of_the_build_are_expected_to_differ() -> None:
    label = "org.opencontainers.image.created"
    (found,) = settings({"config": {"Labels": {label: "1"}}}, {"config": {"Labels": {label: "2"}}})
    assert found.excuse is not None
    (env,) = settings({"config": {"Env": [f"{label}=1"]}}, {})
    assert env.excuse is None


def test_another_platform_is_a_setting_that_differs() -> None:
    one, other = {"os": "linux", "architecture": "amd64"}, {"os": "linux", "architecture": "arm64", "variant": "v8"}
    (found,) = settings(one, other)
    assert (found.before, found.after) == ("linux/amd64", "linux/arm64/v8")
