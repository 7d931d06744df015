"""Room in the layer cache: what goes, what stays, and that nobody who is at work loses anything."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lj_image.builders.oci.cache_gc import CacheLimits, Removal, collect
from lj_image.builders.oci.cache_stock import stock_of
from lj_image.builders.oci.layer_blob import LayerBlob
from lj_image.builders.oci.layer_cache import CachedLayer, LayerCache
from lj_image.cli import run
from lj_image.errors import ArtifactError, UsageError
from lj_image.oci.digest import Digest
from lj_image.oci.source import SourceImage
from standins.assembled import tiny_image

DAY_S = 24 * 3600.0
NONE = CacheLimits()
OLD = CacheLimits(older_than_s=30 * DAY_S)


@pytest.fixture
def cache(tmp_path: Path) -> LayerCache:
    return LayerCache(tmp_path)


def aged(path: Path, days: float) -> None:
    at = time.time() - days * DAY_S
    os.utime(path, (at, at))


def noted(cache: LayerCache, content: bytes, days: float = 0.0, key: str = "") -> Digest:
    """Put a layer into the cache as the assembler does."""
    digest = cache.blobs.put(content)
    key = key or Digest.of(b"key of " + content).hex
    cache.write(CachedLayer(key, LayerBlob(str(digest), str(digest), len(content), len(content)), 0), None, {"a": "x"})
    aged(cache.folder / "layers" / f"{key}.json", days)
    return digest


def image_used(cache: LayerCache, *files: str, days: float, name: str = "tiny:1") -> SourceImage:
    """Put an image into the cache whose layers nobody asked for since."""
    image = tiny_image(cache.folder.parent, *files, name=name)
    assert image.descriptor is not None
    aged(cache.blobs.path(image.descriptor.digest), days)
    return image


def quiet(line: str) -> None:
    """Say nothing."""


def gc(cache: LayerCache, limits: CacheLimits = NONE, **options: bool) -> Removal:
    return collect(cache, limits, say=quiet, **options)


def files_in(folder: Path) -> set[str]:
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return found - {"index.json", "oci-layout", ".in-use"}


def test_without_limits_only_what_nobody_can_use_goes(cache: LayerCache) -> None:
    image = tiny_image(cache.folder.parent, "one")
    layer = noted(cache, b"layer", days=1000)
    lost = cache.blobs.put(b"nobody's")
    gone = gc(cache)
    assert gone.images == ()
    assert [item.title for item in gone.holdings] == [lost.hex]
    assert cache.blobs.has(layer)
    cache.layout().validate()
    assert image.layers[0].descriptor is not None
    assert cache.blobs.has(image.layers[0].descriptor.digest)


def test_a_layer_that_was_not_asked_for_goes_with_its_notes(cache: LayerCache) -> None:
    noted(cache, b"old", days=31)
    young = noted(cache, b"young", days=29)
    (cache.folder / "layers" / "x.good").write_bytes(b"")
    gone = gc(cache, OLD)
    assert [(item.kind, item.size_bytes) for item in gone.holdings] == [("layer", 3)]
    key = Digest.of(b"key of young").hex
    assert files_in(cache.folder) == {f"blobs/sha256/{young.hex}", f"layers/{key}.json", f"layers/{key}.files"}


def test_an_image_in_use_keeps_layers_that_nobody_asked_for(cache: LayerCache) -> None:
    image = image_used(cache, "one", days=1)
    layer = image.layers[0].descriptor
    assert layer is not None
    noted(cache, cache.blobs.path(layer.digest).read_bytes(), days=100)
    assert gc(cache, OLD) == Removal((), ())
    cache.layout().validate()


def test_an_image_that_was_not_used_goes_with_its_layers_and_is_told(cache: LayerCache) -> None:
    image_used(cache, "one", "two", days=40, name="tiny:old")
    kept = image_used(cache, "two", "three", days=1, name="tiny:new")
    gone = gc(cache, OLD)
    assert [image.name for image in gone.images] == ["tiny:old"]
    assert sorted(item.kind for item in gone.holdings) == ["blob", "blob", "layer"]
    assert list(cache.layout().references()) == ["tiny:new"]
    cache.layout().validate()
    assert len(files_in(cache.folder)) == 2 + len(kept.layers)


def test_a_size_lets_the_longest_unused_go_and_no_more(cache: LayerCache) -> None:
    for days in (3, 1, 2):
        noted(cache, b"x" * 1000 + bytes([days]), days=days)
    gone = gc(cache, CacheLimits(keep_bytes=2500))
    assert [item.title for item in gone.holdings] == [Digest.of(b"x" * 1000 + b"\x03").hex]
    assert gc(cache, CacheLimits(keep_bytes=2500)).holdings == ()
    assert len(gc(cache, CacheLimits(keep_bytes=0)).holdings) == 2
    assert files_in(cache.folder) == set()


def test_both_limits_spare_what_was_used_lately(cache: LayerCache) -> None:
    noted(cache, b"a" * 100, days=40)
    noted(cache, b"b" * 100, days=1)
    gone = gc(cache, replace(OLD, keep_bytes=0))
    assert [item.title for item in gone.holdings] == [Digest.of(b"a" * 100).hex]


def test_what_killed_builds_have_left_goes(cache: LayerCache) -> None:
    cache.layout()
    for name in (".layer-abc", ".blob-x.partial", "layers/.k.json.77.partial", ".partial-q/abc", "locks/old.lock"):
        path = cache.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"12345")
    gone = gc(cache)
    assert {item.kind for item in gone.holdings} == {"beginning"}
    assert gone.freed_bytes == 20
    assert files_in(cache.folder) == set()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"blob": 7}', '{"blob": {"digest": "sha256:no"}}', "[" * 100_000])
def test_a_damaged_note_goes_and_is_no_crash(cache: LayerCache, text: str) -> None:
    noted(cache, b"layer")
    (note,) = (cache.folder / "layers").glob("*.json")
    note.write_text(text)
    gone = gc(cache)
    assert sorted(item.kind for item in gone.holdings) == ["blob", "note"]
    assert gc(cache).holdings[0].title.endswith(".files")  # it has lost its note
    assert files_in(cache.folder) == set()


def test_a_note_without_its_blob_goes(cache: LayerCache) -> None:
    cache.blobs.path(noted(cache, b"layer")).unlink()
    assert [item.kind for item in gc(cache).holdings] == ["note"]


def test_a_base_is_a_layer_too_by_its_note(cache: LayerCache) -> None:
    digest = cache.blobs.put(b"base")
    bases = cache.folder.parent / "bases"
    bases.mkdir()
    (bases / "x-tree-2.json").write_text("{}")
    (bases / "x-libdeflate.json").write_text(json.dumps({"digest": digest.hex}))
    assert gc(cache).holdings == ()
    aged(bases / "x-libdeflate.json", 40)
    assert [item.kind for item in gc(cache, OLD).holdings] == ["layer"]
    assert files_in(bases) == {"x-tree-2.json"}


def test_an_image_whose_manifest_is_damaged_goes_and_is_told(cache: LayerCache) -> None:
    image = tiny_image(cache.folder.parent, "one")
    assert image.descriptor is not None
    path = cache.blobs.path(image.descriptor.digest)
    path.chmod(0o644)
    path.write_bytes(b"{}")
    gone = gc(cache)
    assert [(item.name, item.is_damaged) for item in gone.images] == [("tiny:1", True)]
    assert files_in(cache.folder) == set()


def test_a_damaged_index_is_told_and_nothing_goes(cache: LayerCache) -> None:
    tiny_image(cache.folder.parent, "one")
    (cache.folder / "index.json").write_text("{")
    before = files_in(cache.folder)
    with pytest.raises(ArtifactError, match="JSON"):
        gc(cache)
    assert files_in(cache.folder) == before


def test_a_dry_run_tells_and_removes_nothing_and_waits_for_nobody(cache: LayerCache) -> None:
    noted(cache, b"old", days=31)
    (cache.folder / ".layer-abc").write_bytes(b"12345")
    before = files_in(cache.folder)
    told = gc(cache, OLD, dry_run=True)
    assert sorted(item.kind for item in told.holdings) == ["beginning", "layer"]
    with cache.in_use():
        during = gc(cache, OLD, dry_run=True)
    assert [item.kind for item in during.holdings] == ["layer"]  # the beginning may be that of whoever is at work
    assert files_in(cache.folder) == before


BUILD = textwrap.dedent("""
    import pathlib, sys, time
    from lj_image.builders.oci.layer_cache import LayerCache
    from standins.assembled import tiny_image
    folder = pathlib.Path(sys.argv[1])
    cache = LayerCache(folder)
    with cache.in_use():
        for file in ("one", "two"):
            image = tiny_image(folder, file, name="tiny:being-built")
            cache.layout().drop_references(["tiny:being-built"])  # as a build is before its end
        print("at work", flush=True)
        sys.stdin.readline()
        cache.layout().set_reference("tiny:1", image.descriptor)
""")


def test_a_build_in_another_process_is_waited_for_and_loses_nothing(cache: LayerCache) -> None:
    tests = Path(__file__).parents[3]
    with subprocess.Popen(
        [sys.executable, "-c", BUILD, str(cache.folder.parent)],
        env=os.environ | {"PYTHONPATH": str(tests)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as build:
        assert build.stdin is not None
        assert build.stdout is not None
        assert build.stdout.readline() == "at work\n"
        said: list[str] = []

        def say(line: str) -> None:
            said.append(line)
            assert build.stdin is not None
            build.stdin.write("go on\n")
            build.stdin.close()

        gone = collect(cache, CacheLimits(keep_bytes=10**9), say=say)
        assert build.wait() == 0
    assert said == ["a build is using the cache; waiting for its end"]
    assert len(gone.holdings) == 3  # layer, configuration and manifest of what the build gave no name to
    cache.layout().validate()
    assert list(cache.layout().references()) == ["tiny:1"]


def test_whoever_removes_is_alone(cache: LayerCache, monkeypatch: pytest.MonkeyPatch) -> None:
    def look(cache: LayerCache, *, is_alone: bool) -> object:
        with cache.alone(wait=False) as second:
            assert is_alone
            assert not second
        return stock_of(cache, is_alone=is_alone)

    monkeypatch.setattr("lj_image.builders.oci.cache_gc.stock_of", look)
    gc(cache)


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    monkeypatch.setenv("LJ_IMAGE_CACHE", str(tmp_path))

    def call(*arguments: str) -> str:
        assert run(["cache", *arguments]) == 0
        return capsys.readouterr().out

    return call


def test_the_command_lists_images_with_digest_size_and_age(cache: LayerCache, cli: Callable[..., str]) -> None:
    image = image_used(cache, "one", days=3.5)
    assert image.descriptor is not None
    noted(cache, b"spare")
    out = cli("ls")
    assert f"tiny:1  {image.descriptor.digest}" in out
    assert "3 d ago" in out
    assert "1 images, 2 layers, 1 of them in no image: 0.0 MiB in " in out
    told = json.loads(cli("ls", "--json"))
    assert (told["images"][0]["name"], told["layers"], told["in_no_image"]) == ("tiny:1", 2, 1)


def test_the_command_removes_and_tells_what(cache: LayerCache, cli: Callable[..., str]) -> None:
    image_used(cache, "one", days=40)
    told = json.loads(cli("gc", "--older-than", "30d", "--dry-run", "--json"))
    assert [item["kind"] for item in told["removed"]] == ["image", "layer", "blob", "blob"]
    out = cli("gc", "--older-than", "30d", "--keep", "0")
    assert out.startswith("image tiny:1 sha256:")
    assert "(last used: 40 d ago)\nfreed " in out
    assert cli("gc") == "freed 0 bytes (0.0 MiB), nothing\n"


@pytest.mark.parametrize(("option", "value"), [("--older-than", "soon"), ("--keep", "much")])
def test_an_amount_that_is_none_is_named_with_its_option(option: str, value: str) -> None:
    from lj_image.cli.amounts import age_s, size_bytes_of

    with pytest.raises(UsageError, match=f"{option} {value}"):
        (age_s if option == "--older-than" else size_bytes_of)(option, value)
