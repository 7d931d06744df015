"""Layers in zstd hold the very tars that were assembled, the same bytes however many work on them."""

from __future__ import annotations

import gzip
import hashlib
import io
import random
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard

from lj_image.builders.oci import zstd_layers
from lj_image.builders.oci.assemble import layer_descriptor
from lj_image.builders.oci.cache_gc import CacheLimits, collect
from lj_image.builders.oci.entries import File, Streamed
from lj_image.builders.oci.layer_cache import CachedLayer, LayerCache
from lj_image.builders.oci.layer_writer import LayerWriter
from lj_image.builders.oci.zstd_layers import compressed_layers
from lj_image.config import load_config
from lj_image.errors import ArtifactError, BuildError, ManifestError
from lj_image.oci.digest import Digest

MIB = 1024 * 1024
WORDS = [f"{random.Random(9).random()}{number}" for number in range(4000)]
SEEDS = (1, 2, 3)


def text(seed: int, size: int) -> bytes:
    chosen = random.Random(seed)
    line = " ".join(chosen.choice(WORDS) for _ in range(2000)).encode()
    return (line * (size // len(line) + 1))[:size]


def put(cache: LayerCache, seed: int, size: int = 300_000) -> CachedLayer:
    """Assemble a layer with one file, as the builder does."""
    cache.layout()
    partial = cache.folder / f".layer-{seed}"
    with partial.open("wb") as target, LayerWriter(target) as writer:
        writer.add(File(f"opt/{seed}", 0o644, 0, Streamed(size, io.BytesIO(text(seed, size))), "a.tar"))
        blob = writer.finish()
    cache.blobs.adopt(partial, Digest.parse(blob.digest))
    return cache.write(CachedLayer(f"{seed:064x}", blob, 0), None, {f"opt/{seed}": "x"})


@pytest.fixture
def cache(tmp_path: Path) -> LayerCache:
    return LayerCache(tmp_path / "cache")


def test_the_tar_is_the_one_that_was_assembled(cache: LayerCache) -> None:
    (layer,) = compressed_layers([before := put(cache, 1)], cache, level=3)
    frame = cache.blobs.path(layer.digest).read_bytes()
    tar = zstandard.ZstdDecompressor().decompress(frame)  # needs the size of the content in the frame's header
    assert f"sha256:{hashlib.sha256(tar).hexdigest()}" == before.blob.diff_id == layer.blob.diff_id
    assert len(tar) == layer.blob.tar_bytes
    assert zstandard.get_frame_parameters(frame).has_checksum


def test_the_program_of_zstd_takes_it(cache: LayerCache) -> None:
    if shutil.which("zstd") is None:
        pytest.skip("zstd is not installed")
    (layer,) = compressed_layers([put(cache, 1)], cache, level=3)
    subprocess.run(["zstd", "-tq", cache.blobs.path(layer.digest)], check=True)


def test_its_descriptor_is_that_of_a_layer_in_zstd(cache: LayerCache) -> None:
    (layer,) = compressed_layers([put(cache, 1)], cache, level=3)
    found = layer_descriptor(layer)
    content = cache.blobs.path(found.digest).read_bytes()
    assert found.media_type == "application/vnd.oci.image.layer.v1.tar+zstd"
    assert found.digest == Digest.of(content)
    assert found.size_bytes == len(content)
    assert not found.annotations


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_any_number_of_workers_gives_the_same_bytes(tmp_path: Path, workers: int) -> None:
    found = []
    for number in (workers, 3):
        cache = LayerCache(tmp_path / str(number))
        layers = [put(cache, seed, 3 * MIB + seed) for seed in SEEDS]
        found.append([layer.blob for layer in compressed_layers(layers, cache, level=3, workers=number)])
    assert found[0] == found[1]


def test_the_tar_decides_about_the_bytes_and_not_the_gzip_that_it_was_in(cache: LayerCache) -> None:
    layer = put(cache, 1, 3 * MIB)
    tar = gzip.decompress(cache.blobs.path(layer.digest).read_bytes())
    again = cache.blobs.put(gzip.compress(tar, 1, mtime=0))
    assert again != layer.digest
    other = replace(layer, blob=replace(layer.blob, digest=str(again), size_bytes=cache.blobs.size_bytes(again)))
    first, second = compressed_layers([layer, other], cache, level=3)
    assert first.blob == second.blob


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells what a process held at most")
def test_level_19_takes_less_memory_than_a_build_may(cache: LayerCache) -> None:
    layer = put(cache, 1, 12 * MIB)  # longer than the window of that level
    code = f"""
from pathlib import Path
from lj_image.builders.oci.layer_cache import CachedLayer, LayerBlob, LayerCache
from lj_image.builders.oci.zstd_layers import compressed_layers
compressed_layers([CachedLayer("key", {layer.blob!r}, 0)], LayerCache(Path({str(cache.folder.parent)!r})), level=19)
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 200 * 1024


def test_a_layer_is_compressed_once(cache: LayerCache) -> None:
    layer, said = put(cache, 1), list[str]()
    first = compressed_layers([layer], cache, level=3, say=said.append)
    at = cache.blobs.path(first[0].digest).stat().st_mtime_ns
    assert compressed_layers([layer], cache, level=3, say=said.append) == first
    assert cache.blobs.path(first[0].digest).stat().st_mtime_ns == at
    (line,) = said
    assert re.fullmatch(r"layer 1/1 in zstd: [\d.]+ MiB instead of [\d.]+ MiB", line)


def test_it_is_compressed_again_where_that_is_asked_for(cache: LayerCache) -> None:
    layer, said = put(cache, 1), list[str]()
    first = compressed_layers([layer], cache, level=3)
    assert compressed_layers([layer], cache, level=3, anew=True, say=said.append) == first
    assert len(said) == 1


def test_another_level_or_library_is_another_layer(cache: LayerCache, monkeypatch: pytest.MonkeyPatch) -> None:
    layer, said = put(cache, 1), list[str]()
    compressed_layers([layer], cache, level=1, say=said.append)
    compressed_layers([layer], cache, level=5, say=said.append)
    monkeypatch.setattr(zstd_layers, "ZSTD", "9.9.9")
    compressed_layers([layer], cache, level=5, say=said.append)
    assert len(said) == 3


@pytest.mark.parametrize("note", ["", "[]", "{}", '{"digest": 5}', '{"digest": "sha256:x", "size_bytes": 1}', "\udce9"])
def test_a_damaged_note_is_as_good_as_none(cache: LayerCache, note: str) -> None:
    layer = put(cache, 1)
    first = compressed_layers([layer], cache, level=3)
    (path,) = (cache.folder / "layers").glob("zstd-*.json")
    path.write_bytes(note.encode(errors="surrogateescape"))
    assert compressed_layers([layer], cache, level=3) == first


def test_a_blob_that_went_is_made_again(cache: LayerCache) -> None:
    layer = put(cache, 1)
    first = compressed_layers([layer], cache, level=3)
    cache.blobs.path(first[0].digest).unlink()
    assert compressed_layers([layer], cache, level=3) == first
    assert cache.blobs.has(first[0].digest)


def test_layers_keep_their_order_and_what_is_known_of_them(cache: LayerCache) -> None:
    layers = [put(cache, seed) for seed in SEEDS]
    compressed_layers([layers[1]], cache, level=3)
    found = compressed_layers(layers, cache, level=3, workers=2)
    assert [layer.key for layer in found] == [layer.key for layer in layers]
    assert [layer.blob.diff_id for layer in found] == [layer.blob.diff_id for layer in layers]
    assert [dict(cache.files(layer)) for layer in found] == [{f"opt/{seed}": "x"} for seed in SEEDS]


@pytest.mark.parametrize("change", ["cut", "flipped", "another"])
def test_a_damaged_layer_in_the_cache_is_told_and_no_blob_made_of_it(cache: LayerCache, change: str) -> None:
    layer = put(cache, 1)
    path = cache.blobs.path(layer.digest)
    content = path.read_bytes()
    path.chmod(0o644)
    match change:
        case "cut":
            path.write_bytes(content[: len(content) // 2])
        case "flipped":
            path.write_bytes(content[:2000] + bytes(200) + content[2200:])
        case _:
            path.write_bytes(cache.blobs.path(put(cache, 2).digest).read_bytes())
    blobs = sorted((cache.folder / "blobs" / "sha256").iterdir())
    with pytest.raises(ArtifactError, match="in the cache is damaged: ") as caught:
        compressed_layers([layer], cache, level=3)
    assert "build --no-cache" in str(caught.value.hint)
    assert sorted((cache.folder / "blobs" / "sha256").iterdir()) == blobs
    assert not [*cache.folder.glob(".blob-*")]


def test_a_layer_that_is_longer_than_what_is_known_of_it_is_told(cache: LayerCache) -> None:
    layer, longer = put(cache, 1), put(cache, 2, 400_000)
    path = cache.blobs.path(layer.digest)
    path.chmod(0o644)
    path.write_bytes(cache.blobs.path(longer.digest).read_bytes())
    with pytest.raises(ArtifactError, match="in the cache is damaged: "):
        compressed_layers([layer], cache, level=3)


def test_a_layer_that_is_not_in_the_cache_is_told(cache: LayerCache) -> None:
    layer = put(cache, 1)
    cache.blobs.path(layer.digest).unlink()
    with pytest.raises(ArtifactError, match="is missing"):
        compressed_layers([layer], cache, level=3)


def test_a_disk_without_room_is_told(cache: LayerCache, monkeypatch: pytest.MonkeyPatch) -> None:
    layer = put(cache, 1)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(zstd_layers, "write_whole", full)
    with pytest.raises(BuildError, match=r"cannot be written to .*: No space left on device") as caught:
        compressed_layers([layer], cache, level=3)
    assert "cache gc" in str(caught.value.hint)


def test_cache_gc_counts_it_as_a_layer_and_removes_it_with_its_note(cache: LayerCache) -> None:
    compressed_layers([put(cache, 1)], cache, level=3)
    assert not collect(cache, CacheLimits(), say=print).holdings
    going = collect(cache, CacheLimits(keep_bytes=0), say=print)
    assert [item.kind for item in going.holdings] == ["layer", "layer"]
    assert not [*(cache.folder / "layers").iterdir()]
    assert not [*(cache.folder / "locks").glob("zstd-*")]


def test_the_level_comes_from_the_config(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("build: {zstd_level: 12}\n")
    assert load_config({}).values.build.zstd_level == 3
    assert load_config({"LJ_IMAGE_CONFIG": str(path)}).values.build.zstd_level == 12


@pytest.mark.parametrize("level", ["0", "20", "-1", "fast"])
def test_a_level_that_costs_too_much_memory_or_is_none_is_refused(tmp_path: Path, level: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(f"build:\n  zstd_level: {level}\n")
    with pytest.raises(ManifestError) as caught:
        load_config({"LJ_IMAGE_CONFIG": str(path)})
    assert str(caught.value.location).endswith("config.yaml:2:15")
