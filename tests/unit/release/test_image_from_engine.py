"""An engine's image becomes one of the cache: the same bytes as the engine has, read once, whatever happens."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lj_image.builders.docker.known_layers import KnownLayers
from lj_image.builders.oci.cache_gc import CacheLimits, collect
from lj_image.builders.oci.layer_blob import LayerBlob
from lj_image.builders.oci.layer_cache import CachedLayer, LayerCache
from lj_image.catalog.catalog import Catalog
from lj_image.catalog.release import Release
from lj_image.catalog.resolve import resolve
from lj_image.config import Config
from lj_image.errors import ArtifactError, BuildError, EngineError, Interrupted
from lj_image.oci.content import content_of
from lj_image.oci.digest import Digest
from lj_image.oci.source import SourceImage
from lj_image.release.engine_source import engine_image, known_manifest
from lj_image.release.record import Built
from samples.images import gzipped, sha256, tar_of
from standins.assembled import AT
from standins.saving_engine import (
    SavingEngine,
    config_of,
    saved_before_25,
    saved_by_containerd,
    saved_since_25,
)

IMAGES = Path(__file__).parents[3] / "images"
TAG = "tiny:25.02"
LAYERS = (
    tar_of({"etc/os": b"Debian\n"}),
    tar_of({"opt/big": bytes(range(256)) * 9_000}),
    tar_of({"opt/other": bytes(range(255, -1, -1)) * 9_000}),
)


def engine_before_25(layers: tuple[bytes, ...] = LAYERS, **how: Any) -> SavingEngine:
    return SavingEngine(f"sha256:{sha256(config_of(layers))}", layers, saved_before_25(layers), **how)


def engine_since_25(layers: tuple[bytes, ...] = LAYERS) -> SavingEngine:
    return SavingEngine(f"sha256:{sha256(config_of(layers))}", layers, saved_since_25(layers))


def built_by(engine: SavingEngine) -> Built:
    return Built(engine.image_id, TAG, "i", "p", "l", "docker", f"base-os@sha256:{'0' * 64}", AT, 1.0, 1)


@pytest.fixture
def release(config: Config) -> Release:
    """Return a release whose base is in no registry."""
    return resolve(Catalog(IMAGES), config, "25.02", variant="open", only_configured=False)


def read(engine: SavingEngine, release: Release, config: Config, said: list[str] | None = None) -> SourceImage:
    say = (lambda line: None) if said is None else said.append
    return engine_image(built_by(engine), release, engine, config, say=say)  # type: ignore[arg-type]


def inside_the_last_layer(engine: SavingEngine) -> int:
    """Return a place in the archive after one of the two large layers, and in the midst of the other."""
    return max(engine.archive.index(b"opt/big"), engine.archive.index(b"opt/other")) + 50_000


def tars_of(image: SourceImage) -> list[bytes]:
    """Return what each layer's blob unpacks to, by another reader than ours."""
    found = []
    for layer in image.layers:
        with layer.open() as stream:
            found.append(gzip.decompress(stream.read(100_000_000)))
    return found


def files_in(config: Config) -> set[str]:
    folder = config.cache_dir / "oci"
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return {path for path in found if not path.startswith("locks/")} - {"index.json", "oci-layout", ".in-use"}


@pytest.mark.parametrize("engine_of", [engine_before_25, engine_since_25])
def test_every_layer_is_compressed_and_the_configuration_kept_byte_for_byte(
    engine_of: Callable[[], SavingEngine], release: Release, config: Config
) -> None:
    engine = engine_of()
    image = read(engine, release, config)
    assert tars_of(image) == list(LAYERS)
    assert image.config == config_of(LAYERS)
    manifest = json.loads(image.manifest or b"")
    assert manifest["mediaType"] == "application/vnd.oci.image.manifest.v1+json"
    assert manifest["config"]["digest"] == engine.image_id
    assert {layer["mediaType"] for layer in manifest["layers"]} == {"application/vnd.oci.image.layer.v1.tar+gzip"}
    assert engine.closed == 1
    assert len(content_of(image).blobs) == 4


def test_both_forms_of_save_give_one_digest(release: Release, config: Config, tmp_path: Path) -> None:
    there = read(engine_before_25(), release, config)
    elsewhere = read(engine_since_25(), release, replace(config, cache_dir=tmp_path / "elsewhere"))
    assert there.manifest == elsewhere.manifest


def test_an_image_that_was_read_needs_no_engine_any_more(release: Release, config: Config) -> None:
    engine = engine_before_25()
    assert known_manifest(built_by(engine), config) is None
    image = read(engine, release, config)
    again = engine_image(built_by(engine), release, None, config, say=pytest.fail)
    assert (again.manifest, again.config) == (image.manifest, image.config)
    assert tars_of(again) == list(LAYERS)
    assert again.descriptor is not None
    assert known_manifest(built_by(engine), config) == again.descriptor.digest
    assert engine.saves == 1


def test_an_assembled_image_has_the_manifest_of_its_record(config: Config) -> None:
    built = replace(built_by(engine_before_25()), manifest=f"sha256:{'a' * 64}")
    assert known_manifest(built, config) == Digest("a" * 64)


def test_without_an_engine_an_unread_image_is_an_error_that_says_so(release: Release, config: Config) -> None:
    with pytest.raises(EngineError, match="has to be read from the engine"):
        engine_image(built_by(engine_before_25()), release, None, config, say=pytest.fail)


def test_the_engine_is_connected_to_no_sooner_than_it_is_needed(release: Release, config: Config) -> None:
    engine, calls = engine_before_25(), list[int]()

    def connect() -> Any:
        calls.append(1)
        return engine

    for _ in range(2):
        engine_image(built_by(engine), release, None, config, say=lambda line: None, connect=connect)
    assert calls == [1]


def test_only_new_layers_of_the_next_image_are_compressed(
    release: Release, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    read(engine_before_25(), release, config)
    compressed, original = list[Digest](), KnownLayers.compress

    def counting(self: KnownLayers, *given: Any) -> Any:
        found = original(self, *given)
        compressed.append(found[0])
        return found

    monkeypatch.setattr(KnownLayers, "compress", counting)
    following, said = (*LAYERS[:2], tar_of({"opt/new": b"new"})), list[str]()
    image = read(engine_before_25(following), release, config, said)
    assert tars_of(image) == list(following)
    assert compressed == [Digest(sha256(following[2]))]
    assert said[0].startswith("reading 1 layers of tiny:25.02 from the engine, 2 are known")


def test_a_layer_that_begins_like_a_known_one_is_not_lost(release: Release, config: Config) -> None:
    start = bytes(2_000_000)
    known, twin = tar_of({"opt/x": start + b"a"}), tar_of({"opt/x": start + b"b"})
    read(engine_before_25((known,)), release, config)
    engine = engine_before_25((twin, known))
    assert tars_of(read(engine, release, config)) == [twin, known]
    assert engine.saves <= 2


def test_a_layer_that_was_assembled_here_is_taken_as_it_is(release: Release, config: Config) -> None:
    cache, other = LayerCache(config.cache_dir), gzip.compress(LAYERS[1], 1, mtime=0)
    digest = cache.blobs.put(other)
    blob = LayerBlob(str(digest), len(other), f"sha256:{sha256(LAYERS[1])}", len(LAYERS[1]))
    cache.write(CachedLayer("k" * 64, blob, 0), None, {})
    image = read(engine_before_25(), release, config)
    assert image.layers[1].descriptor is not None
    assert image.layers[1].descriptor.digest == digest
    assert tars_of(image) == list(LAYERS)


def test_a_layer_that_occurs_twice_is_there_twice(release: Release, config: Config) -> None:
    twice = (LAYERS[0], LAYERS[1], LAYERS[0])
    assert tars_of(read(engine_since_25(twice), release, config)) == list(twice)


def test_an_image_without_layers_has_its_configuration(release: Release, config: Config) -> None:
    image = read(engine_before_25(()), release, config)
    assert (image.layers, image.config) == ((), config_of(()))


def test_blobs_of_containerd_are_taken_as_they_are_with_their_manifest(release: Release, config: Config) -> None:
    image_id, manifest, archive = saved_by_containerd(LAYERS)
    image = read(SavingEngine(image_id, LAYERS, archive, keeps_blobs=True), release, config)
    assert image.manifest == manifest
    assert [layer.descriptor.digest.hex for layer in image.layers if layer.descriptor] == [
        sha256(gzipped(layer)) for layer in LAYERS
    ]
    again = engine_image(built_by(SavingEngine(image_id, LAYERS, b"")), release, None, config, say=pytest.fail)
    assert again.manifest == manifest


def test_of_an_index_with_attestations_the_image_alone_is_taken(release: Release, config: Config) -> None:
    image_id, manifest, archive = saved_by_containerd(LAYERS, attested=True)
    image = read(SavingEngine(image_id, LAYERS, archive, keeps_blobs=True), release, config)
    assert image.manifest == manifest
    collect(LayerCache(config.cache_dir), CacheLimits(), say=pytest.fail)
    assert tars_of(engine_image(built_by(SavingEngine(image_id, LAYERS, b"")), release, None, config, say=print)) == [
        *LAYERS
    ]


def test_a_blob_of_containerd_that_is_damaged_is_told(release: Release, config: Config) -> None:
    image_id, _, archive = saved_by_containerd(LAYERS)
    blob = gzipped(LAYERS[2])
    damaged = archive.replace(blob, blob[:-1] + bytes([blob[-1] ^ 1]))
    with pytest.raises(ArtifactError, match="came as sha256"):
        read(SavingEngine(image_id, LAYERS, damaged, keeps_blobs=True), release, config)


def test_an_engine_that_goes_away_is_told_and_what_was_read_is_kept(release: Release, config: Config) -> None:
    engine = engine_since_25()
    engine.breaks_after = inside_the_last_layer(engine)
    with pytest.raises(EngineError, match="went away while it saved") as caught:
        read(engine, release, config)
    assert "layers that were read are kept" in str(caught.value.hint)
    kept = [path for path in files_in(config) if path.startswith("layers/gzip-")]
    assert kept
    assert not [path for path in files_in(config) if "partial" in path]
    engine.breaks_after, said = None, list[str]()
    assert tars_of(read(engine, release, config, said)) == list(LAYERS)
    assert said[0].startswith(f"reading {3 - len(kept)} layers")
    assert engine.closed == 2


def test_ctrl_c_keeps_finished_layers_and_leaves_no_thread(release: Release, config: Config) -> None:
    engine, threads = engine_since_25(), threading.active_count()
    engine.breaks_after = inside_the_last_layer(engine)
    engine.interrupts = True
    with pytest.raises(Interrupted, match=r"of 3 layers of tiny:25\.02 are still to be compressed"):
        read(engine, release, config)
    assert threading.active_count() == threads
    assert engine.closed == 1
    assert not [path for path in files_in(config) if "partial" in path]
    assert known_manifest(built_by(engine), config) is None


def test_a_stream_that_ends_early_is_told(release: Release, config: Config) -> None:
    engine = engine_before_25()
    engine.archive = engine.archive[: engine.archive.index(b"opt/big") + 100_000]
    with pytest.raises(EngineError, match="not whole: it ends inside a file"):
        read(engine, release, config)


def test_an_image_that_was_removed_is_told(release: Release, config: Config) -> None:
    engine = engine_before_25()
    with pytest.raises(EngineError, match="does not have the image"):
        read(replace(engine, image_id=f"sha256:{'1' * 64}", removed=True), release, config)
    with pytest.raises(EngineError, match=r"does not have the image .* any more"):
        read(replace(engine, removed=True), release, config)


def test_another_configuration_than_that_of_the_record_is_refused(release: Release, config: Config) -> None:
    engine = engine_since_25()
    engine.archive = engine.archive.replace(b'"A=b"', b'"A=c"')
    with pytest.raises(EngineError, match="another configuration"):
        read(engine, release, config)


def test_a_save_without_a_layer_is_refused(release: Release, config: Config) -> None:
    engine = replace(engine_before_25(), archive=saved_since_25(LAYERS[:2]))
    with pytest.raises(EngineError, match=f"without its layer sha256:{sha256(LAYERS[2])}"):
        read(engine, release, config)


def test_a_layer_that_the_image_does_not_name_is_refused(release: Release, config: Config) -> None:
    engine = engine_before_25()
    engine.archive = engine.archive.replace(b"Debian", b"debian")
    with pytest.raises(EngineError, match="does not name"):
        read(engine, release, config)
    assert not [path for path in files_in(config) if "partial" in path]


def test_a_cache_that_cannot_be_written_is_told(release: Release, config: Config, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(BuildError, match="cannot be written"):
        read(engine_before_25(), release, replace(config, cache_dir=tmp_path / "file"))


def test_gc_keeps_what_an_image_needs_and_removes_it_with_the_image(release: Release, config: Config) -> None:
    engine = engine_before_25()
    read(engine, release, config)
    cache, before = LayerCache(config.cache_dir), files_in(config)
    collect(cache, CacheLimits(), say=pytest.fail)
    assert files_in(config) == before
    gone = collect(cache, CacheLimits(keep_bytes=0), say=pytest.fail)
    assert [image.name for image in gone.images] == [f"{TAG}@{engine.image_id}"]
    assert files_in(config) == set()
    assert known_manifest(built_by(engine), config) is None


def test_an_image_whose_layer_is_gone_is_read_again(release: Release, config: Config) -> None:
    engine = engine_before_25()
    image = read(engine, release, config)
    lost = image.layers[1].descriptor
    assert lost is not None
    LayerCache(config.cache_dir).blobs.path(lost.digest).unlink()
    assert known_manifest(built_by(engine), config) is None
    assert read(engine, release, config).manifest == image.manifest
    assert engine.saves == 2


def test_a_damaged_note_is_as_good_as_none(release: Release, config: Config) -> None:
    engine = engine_before_25()
    image = read(engine, release, config)
    for path in (config.cache_dir / "oci" / "layers").glob("gzip-*"):
        path.write_text("{")
    other = engine_before_25((*LAYERS, tar_of({"new": b""})))
    assert [layer.descriptor for layer in read(other, release, config).layers[:3]] == [
        layer.descriptor for layer in image.layers
    ]
