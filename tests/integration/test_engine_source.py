"""Images that a real engine built, read for our own client: pulled again they are the same images."""

from __future__ import annotations

import io
import os
import secrets
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import docker
import pytest
from scratch import Scratch

from lj_image.builders.docker.loading import keeps_blobs
from lj_image.catalog.catalog import Catalog
from lj_image.catalog.release import Release
from lj_image.catalog.resolve import resolve
from lj_image.config import Config, ConfigFile
from lj_image.errors import BuildError
from lj_image.oci.capabilities import Capabilities
from lj_image.oci.content import content_of
from lj_image.oci.source import SourceImage
from lj_image.registry.client import Registry
from lj_image.registry.publishing.place import Place
from lj_image.registry.publishing.publish import publish_content
from lj_image.registry.transfer.delivery import Destination
from lj_image.release.engine_source import engine_image, known_manifest
from lj_image.release.record import Built
from samples.images import tar_of
from standins.assembled import AT

IMAGES = Path(__file__).parents[2] / "images"
NOWHERE = f"base-os@sha256:{'0' * 64}"


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(None, ConfigFile(), tmp_path / "cache")


@pytest.fixture
def release(config: Config) -> Release:
    return resolve(Catalog(IMAGES), config, "25.02", variant="open", only_configured=False)


@pytest.fixture
def imported(engine: docker.APIClient, scratch: Scratch) -> Callable[..., str]:
    """Return a function that makes an image with a layer for each file, and returns its name."""

    def make(*files: bytes, base: str = "scratch") -> str:
        name = f"{scratch.name('engine-source')}:{secrets.token_hex(4)}"
        copies = "".join(f"ADD {at}.tar /layer{at}/\n" for at in range(len(files)))
        context = {"Dockerfile": f'FROM {base}\n{copies}CMD ["/nothing"]\n'.encode()}
        context |= {f"{at}.tar": tar_of({"file": content}) for at, content in enumerate(files)}
        lines = engine.build(fileobj=io.BytesIO(tar_of(context)), custom_context=True, tag=name, rm=True, decode=True)
        said = [line["error"] for line in lines if "error" in line]
        assert not said, said
        return name

    return make


def built_by(engine: docker.APIClient, name: str, base: str = NOWHERE) -> Built:
    return Built(engine.inspect_image(name)["Id"], name, "i", "p", "l", "docker", base, AT, 1.0, 1)


def unique(size_bytes: int) -> bytes:
    return secrets.token_bytes(size_bytes)


def publish(image: SourceImage, registry: str, repository: str) -> str:
    with Registry(registry, intent="push", capabilities=Capabilities()) as opened:
        place = Place(Destination("public", opened, repository), ("1",))
        (placed,) = publish_content(content_of(image), [place])
    assert placed.error is None, placed.error
    return f"{registry}/{repository}:1"


def test_what_is_published_is_pulled_as_the_image_that_was_built(
    engine: docker.APIClient,
    registry: str,
    scratch: Scratch,
    imported: Callable[..., str],
    release: Release,
    config: Config,
) -> None:
    name = imported(b"hello", unique(3_000_000))
    built = built_by(engine, name)
    assert known_manifest(built, config) is None
    image = engine_image(built, release, engine, config, say=print)
    assert image.descriptor is not None
    place = publish(image, registry, name.partition(":")[0])
    before = engine.inspect_image(name)
    engine.remove_image(name)
    engine.pull(place)
    try:
        after = engine.inspect_image(place)
        assert after["RootFS"] == before["RootFS"]
        assert after["Config"]["Cmd"] == ["/nothing"]
        assert built.image_id in (after["Id"], str(image.descriptor.digest))
    finally:
        engine.remove_image(place)
    # The image is gone, and it can still be published.
    again = engine_image(built, release, None, config, say=pytest.fail)
    assert again.manifest == image.manifest
    assert known_manifest(built, config) == image.descriptor.digest


def test_an_engine_that_keeps_blobs_gives_the_manifest_that_it_pushes(
    engine: docker.APIClient,
    registry: str,
    scratch: Scratch,
    imported: Callable[..., str],
    release: Release,
    config: Config,
) -> None:
    if not keeps_blobs(engine):
        pytest.skip("this engine keeps layers unpacked")
    name = imported(b"hello", unique(100_000))
    image = engine_image(built_by(engine, name), release, engine, config, say=print)
    place = f"{registry}/{name}"
    engine.tag(name, place.rpartition(":")[0], place.rpartition(":")[2])
    list(engine.push(place, stream=True))
    try:
        with Registry(registry) as opened:
            repository, _, tag = name.rpartition(":")
            held = opened.manifest(repository, tag)
        assert image.manifest is not None
        assert image.manifest == held.content or str(image.descriptor and image.descriptor.digest) in str(held.content)
    finally:
        engine.remove_image(place)


def test_the_layers_of_a_base_in_a_registry_stay_there(
    engine: docker.APIClient,
    registry: str,
    scratch: Scratch,
    imported: Callable[..., str],
    release: Release,
    config: Config,
) -> None:
    if keeps_blobs(engine):
        pytest.skip("this engine keeps blobs, and saves those of the base too")
    base = imported(b"a base", unique(2_000_000))
    place = f"{registry}/{base}"
    engine.tag(base, *place.rsplit(":", 1))
    list(engine.push(place, stream=True))
    digest = next(item for item in engine.inspect_image(place)["RepoDigests"] if item.startswith(registry))
    try:
        name = imported(b"above", base=place)
        built = built_by(engine, name, f"{place}@{digest.partition('@')[2]}")
        on_registry = replace(release, base=replace(release.base, recipe=None, reference=place))
        said = list[str]()
        image = engine_image(built, on_registry, engine, config, say=said.append)
        assert said[0].startswith("reading 1 layers")
        assert [layer.origin for layer in image.layers] == [place.rpartition(":")[0]] * 2 + [""]
        again = engine_image(built, on_registry, None, config, say=pytest.fail)
        assert [layer.origin for layer in again.layers] == [layer.origin for layer in image.layers]
        with again.layers[1].open() as stream:
            assert len(stream.read(10_000_000)) == again.layers[1].size_bytes
        published = publish(again, registry, name.partition(":")[0] + "-published")
        engine.remove_image(name)
        engine.pull(published)
        assert engine.inspect_image(published)["Id"] == built.image_id
        engine.remove_image(published)
    finally:
        engine.remove_image(place)


def test_a_base_whose_registry_does_not_answer_is_compressed_like_the_rest(
    engine: docker.APIClient, imported: Callable[..., str], release: Release, config: Config
) -> None:
    if keeps_blobs(engine):
        pytest.skip("this engine keeps blobs, and saves those of the base too")
    nowhere = replace(release, base=replace(release.base, recipe=None, reference="localhost:1/base:1"))
    built, said = built_by(engine, imported(b"one"), f"localhost:1/base:1@sha256:{'0' * 64}"), list[str]()
    image = engine_image(built, nowhere, engine, config, say=said.append)
    assert [layer.origin for layer in image.layers] == [""]
    assert said[0].startswith("the base's layers are compressed like the others: ")


def test_a_full_disk_is_told_and_nothing_is_left_half_written(
    engine: docker.APIClient, imported: Callable[..., str], release: Release, small_disk: Path
) -> None:
    config = Config(None, ConfigFile(), small_disk)
    built = built_by(engine, imported(b"small", unique(12_000_000)))
    with pytest.raises(BuildError, match=r"cannot be written .*No space left") as caught:
        engine_image(built, release, engine, config, say=print)
    assert "cache gc" in str(caught.value.hint)
    assert not list(small_disk.rglob("*.partial"))
    assert known_manifest(built, config) is None


def test_a_process_that_is_killed_leaves_finished_layers_to_the_next(
    engine: docker.APIClient, imported: Callable[..., str], release: Release, config: Config
) -> None:
    built = built_by(engine, imported(b"one", unique(40_000_000), unique(40_000_000)))
    script = textwrap.dedent(
        f"""
        import sys
        from pathlib import Path
        from lj_image.builders.docker.engine import connect
        from lj_image.catalog.catalog import Catalog
        from lj_image.catalog.resolve import resolve
        from lj_image.config import Config, ConfigFile
        from lj_image.release.engine_source import engine_image
        from lj_image.release.record import Built
        config = Config(None, ConfigFile(), Path({str(config.cache_dir)!r}))
        release = resolve(Catalog(Path({str(IMAGES)!r})), config, "25.02", variant="open", only_configured=False)
        engine_image({built!r}, release, connect(), config, say=lambda line: print(line, flush=True))
        """
    )
    for _ in range(2):
        child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=dict(os.environ))
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(secrets.randbelow(400) / 1000)
        child.kill()
        child.wait()
        child.stdout.close()
    image = engine_image(built, release, engine, config, say=print)
    assert image.image_id == image.settings.digest or str(image.image_id) == built.image_id or keeps_blobs(engine)
    assert [layer.diff_id for layer in image.layers] == list(image.settings.diff_ids)
    for layer in image.layers:
        assert layer.file is not None
        assert layer.descriptor is not None
        assert layer.file.stat().st_size == layer.descriptor.size_bytes
