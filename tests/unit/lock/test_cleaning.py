from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from lj_image.catalog.catalog import Catalog
from lj_image.cli import run
from lj_image.errors import LjImageError
from lj_image.lock.built_wheels import BuiltWheel
from lj_image.lock.cleaning import HOUR_S, Leftover, Limits, chosen, leftovers, remove
from lj_image.lock.contents import Use, contents, uses_of, verify
from lj_image.lock.lock import Artifact, Lock, LockedDistribution
from lj_image.lock.lockfile import with_digest, write_lock
from lj_image.lock.store import ArtifactStore

DAY_S = 24 * HOUR_S
NOW = 1_000_000_000.0


def aged(path: Path, age_s: float) -> Path:
    at = time.time() - age_s
    os.utime(path, (at, at))
    return path


def added(store: ArtifactStore, content: bytes, file: str = "a.whl", age_s: float = 2 * DAY_S) -> Artifact:
    artifact = store.add([content], file, "wheel")
    aged(store.path(artifact.sha256), age_s)
    return artifact


def lock_of(*artifacts: Artifact) -> Lock:
    items = tuple(
        LockedDistribution(f"tool-{number}", "1.0", artifact, "pypi", "tool")
        for number, artifact in enumerate(artifacts)
    )
    return with_digest(Lock("25.02-open", (), items, (), ""))


def spoil(store: ArtifactStore, artifact: Artifact) -> None:
    path = store.path(artifact.sha256)
    path.chmod(0o644)
    path.write_bytes(b"x" * artifact.size_bytes)


def test_every_file_is_listed_with_the_locks_that_name_it(store: ArtifactStore) -> None:
    big, small = added(store, b"0123456789", "big.whl"), added(store, b"0", "small.whl")
    stranger = added(store, b"01", "stranger.whl")
    found = contents(store, uses_of({"one/25.02-open": lock_of(big, small), "two/25.03-open": lock_of(big)}, ()))
    assert [(entry.file, entry.locks) for entry in found] == [
        ("big.whl", ("one/25.02-open", "two/25.03-open")),
        (None, ()),
        ("small.whl", ("one/25.02-open",)),
    ]
    assert found[1].sha256 == stranger.sha256


def test_a_wheel_built_here_is_used_by_the_locks_of_its_source(store: ArtifactStore, tmp_path: Path) -> None:
    source, wheel, other = added(store, b"source"), added(store, b"wheel"), added(store, b"other")
    built = (
        BuiltWheel(tmp_path / "a.json", "wheel.whl", wheel.sha256, source.sha256),
        BuiltWheel(tmp_path / "b.json", "other.whl", other.sha256, "0" * 64),
    )
    uses = uses_of({"one/25.02-open": lock_of(source)}, built)
    assert uses[wheel.sha256] == Use("wheel.whl", ("one/25.02-open",))
    assert uses[other.sha256] == Use("other.whl", ())


def test_hashing_drops_what_is_not_what_its_digest_says(store: ArtifactStore) -> None:
    good, bad = added(store, b"good"), added(store, b"evil")
    spoil(store, bad)
    verdict = verify(store, contents(store, {}))
    assert (verdict.files, verdict.size_bytes) == (2, 8)
    assert [entry.sha256 for entry in verdict.dropped] == [bad.sha256]
    assert store.has(good)
    assert not store.path(bad.sha256).exists()


def test_a_file_that_goes_away_while_others_are_hashed_is_not_counted_as_wrong(store: ArtifactStore) -> None:
    gone = added(store, b"gone")
    entries = contents(store, {})
    store.drop(gone.sha256)
    assert verify(store, entries).dropped == ()


def leftover(title: str, size_bytes: int, age_s: float, kind: str = "artifact") -> Leftover:
    return Leftover(kind, title, (Path(title),), size_bytes, NOW - age_s)  # type: ignore[arg-type]


FOUND = (
    leftover("young", 10, 60),
    leftover("old", 10, 40 * DAY_S),
    leftover("middle", 10, 2 * DAY_S),
    leftover("draft", 1, 2 * DAY_S, "draft"),
    leftover("template", 1, 2 * DAY_S, "template"),
)


@pytest.mark.parametrize(
    ("limits", "titles"),
    [
        (Limits(), "old middle draft"),
        (Limits(older_than_s=30 * DAY_S), "old"),
        (Limits(older_than_s=DAY_S), "old middle draft template"),
        (Limits(keep_bytes=95), "old draft"),
        (Limits(keep_bytes=1000), "draft"),
        (Limits(keep_bytes=0), "old middle draft"),
        (Limits(older_than_s=30 * DAY_S, keep_bytes=0), "old"),
        (Limits(everything=True), "old middle young draft template"),
    ],
)
def test_the_longest_unused_go_first_and_the_young_stay(limits: Limits, titles: str) -> None:
    assert [item.title for item in chosen(FOUND, limits, 100, NOW)] == titles.split()


def all_leftovers(store: ArtifactStore, uses: dict[str, Use] | None = None, **options: object) -> set[tuple[str, str]]:
    found = leftovers(store, contents(store, uses or {}), uses or {}, (), frozenset({"used"}), **options)  # type: ignore[arg-type]
    return {(item.kind, item.paths[0].name) for item in found}


def test_what_interrupted_runs_have_left_is_found(store: ArtifactStore) -> None:
    store.prepare()
    cache = store.root.parent
    folder = store.root / "sha256" / "aa"
    wanted, lost = "a" * 64, "b" * 64
    for path in (
        folder / f"{wanted}.partial",
        folder / f"{lost}.partial",
        folder / f"{lost}.verified",
        folder / f"{lost}.verified.17.99",
        store.root / "incoming.17.99",
        cache / "wheels" / "abc.17",
        cache / "bases" / "used.tar",
        cache / "bases" / "unused.tar",
        cache / "templates" / "__jinja2_1.cache",
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    uses = {wanted: Use("wanted.whl", ("one/25.02-open",))}
    names = {
        ("beginning", f"{lost}.partial"),
        ("draft", f"{lost}.verified"),
        ("draft", f"{lost}.verified.17.99"),
        ("draft", "incoming.17.99"),
        ("draft", "abc.17"),
        ("base", "unused.tar"),
        ("template", "__jinja2_1.cache"),
    }
    assert all_leftovers(store, uses) == names
    more = {("beginning", f"{wanted}.partial"), ("base", "used.tar")}
    assert all_leftovers(store, uses, everything=True) == names | more


def test_an_artifact_goes_with_its_marker_and_the_note_of_its_making(store: ArtifactStore) -> None:
    wheel = added(store, b"wheel")
    note = store.root.parent / "wheels" / "a.json"
    note.parent.mkdir()
    note.write_text("{}")
    built = (BuiltWheel(note, "wheel.whl", wheel.sha256, "0" * 64),)
    found = leftovers(store, contents(store, {}), {}, built, frozenset())
    assert len(remove(found, store)) == 1
    assert not note.exists()
    assert [path.name for path in (store.root / "sha256").glob("??/*")] == []


def test_a_note_about_a_wheel_that_is_gone_goes(store: ArtifactStore, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    built = (BuiltWheel(tmp_path / "a.json", "wheel.whl", "0" * 64, "1" * 64),)
    assert [item.kind for item in leftovers(store, (), {}, built, frozenset())] == ["note"]


def test_what_somebody_writes_at_this_moment_stays(store: ArtifactStore) -> None:
    artifact, other = added(store, b"busy"), added(store, b"free")
    found = leftovers(store, contents(store, {}), {}, (), frozenset())
    with store.writing(artifact.sha256):
        gone = remove(found, store)
    assert [item.sha256 for item in gone] == [other.sha256]
    assert store.path(artifact.sha256).exists()


def test_a_base_that_is_being_made_stays(store: ArtifactStore) -> None:
    tar = store.root.parent / "bases" / "x.tar"
    tar.parent.mkdir(parents=True)
    tar.write_text("x")
    found = leftovers(store, (), {}, (), frozenset())
    with FileLock(tar.with_suffix(".lock")):
        assert remove(found, store) == ()
    assert len(remove(found, store)) == 1


def test_nothing_goes_while_a_build_runs(store: ArtifactStore) -> None:
    artifact = added(store, b"in use by a trial")
    folder = store.root.parent / "records" / "tiny"
    folder.mkdir(parents=True)
    found = leftovers(store, contents(store, {}), {}, (), frozenset())
    with (
        FileLock(folder / ".25.02-open.build.lock"),
        pytest.raises(LjImageError, match=r"a build of tiny 25\.02-open is running"),
    ):
        remove(found, store)
    assert store.has(artifact)
    assert len(remove(found, store)) == 1


@pytest.fixture
def project(
    write_catalog: Callable[..., Catalog], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: ArtifactStore
) -> Callable[..., int]:
    """Return a function that runs `store` in a catalog with one lock, next to whose file another one lies."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("LJ_IMAGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("LJ_IMAGE_CONFIG", raising=False)
    catalog = write_catalog()
    kept = added(store, b"kept", "kept.whl")
    added(store, b"unknown")
    write_lock(lock_of(kept), catalog.root / "tiny/locks/25.02-open.txt")
    return lambda *arguments: run(["--images", str(catalog.root), "store", *arguments])


def test_ls_shows_names_and_locks(project: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert project("ls") == 0
    rows = capsys.readouterr().out.splitlines()
    assert [row.split()[1:] for row in rows[1:3]] == [["7", "?", "-"], ["4", "kept.whl", "tiny/25.02-open"]]
    assert rows[3].startswith("2 files, 0.0 MiB in ")
    assert project("ls", "--unused", "--json") == 0
    assert [item["size_bytes"] for item in json.loads(capsys.readouterr().out)] == [7]


def test_verify_is_exit_code_1_when_something_was_wrong(
    project: Callable[..., int], store: ArtifactStore, capsys: pytest.CaptureFixture[str]
) -> None:
    assert project("verify") == 0
    assert capsys.readouterr().out == "2 of 2 files are right (0.0 MiB hashed)\n"
    spoil(store, Artifact("", 4, contents(store, {})[1].sha256, "wheel"))
    assert project("verify", "--json") == 1
    assert [item["file"] for item in json.loads(capsys.readouterr().out)["dropped"]] == ["kept.whl"]


def test_gc_says_what_it_frees_and_keeps_what_a_lock_names(
    project: Callable[..., int], store: ArtifactStore, capsys: pytest.CaptureFixture[str]
) -> None:
    assert project("gc", "--dry-run") == 0
    assert capsys.readouterr().out.splitlines()[-1] == "would free 7 bytes (0.0 MiB), 1 artifact"
    assert len(contents(store, {})) == 2
    assert project("gc", "--json") == 0
    assert json.loads(capsys.readouterr().out)["freed_bytes"] == 7
    assert [entry.size_bytes for entry in contents(store, {})] == [4]
    assert project("gc", "--all", "--older-than", "30d") == 0
    assert capsys.readouterr().out == "freed 0 bytes (0.0 MiB), nothing\n"
    assert project("gc", "--all") == 0
    assert contents(store, {}) == ()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["--keep-size", "much"], "not a size"), (["--older-than", "30"], "not an age")],
)
def test_a_wrong_limit_is_exit_code_2(
    project: Callable[..., int], capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert project("gc", *arguments) == 2
    assert words in capsys.readouterr().err


def test_gc_stops_at_a_lock_that_cannot_be_read(
    project: Callable[..., int],
    tmp_path: Path,
    store: ArtifactStore,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "images/tiny/locks/25.03-open.txt").write_text("damaged")
    assert project("gc") == 2
    assert "25.03-open.txt" in capsys.readouterr().err
    assert len(contents(store, {})) == 2


@pytest.mark.parametrize("size", ["500m", "500 MiB", "0.5g", "524288000"])
def test_sizes_are_read_as_people_write_them(size: str) -> None:
    from lj_image.cli.amounts import size_bytes_of

    assert size_bytes_of("--keep-size", size) in (500 * 1024**2, 512 * 1024**2)
