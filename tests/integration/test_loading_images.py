"""Assembled images and a real engine: loaded once, run, and only what it lacks is sent."""

from __future__ import annotations

import io
import secrets
import tarfile
from pathlib import Path

import docker
import pytest
from scratch import Scratch

from lj_image.builders.docker.loading import load_image
from lj_image.catalog.catalog import Catalog
from lj_image.catalog.release import Release
from lj_image.catalog.resolve import resolve
from lj_image.config import Config, ConfigFile
from lj_image.errors import ArtifactError, EngineError
from lj_image.oci.source import SourceImage
from lj_image.registry.publishing.publish import publish_content
from lj_image.release.means import Means
from lj_image.release.outcome import PLAINLY
from lj_image.release.publish import Sender
from lj_image.release.record import Built
from lj_image.release.references import Target
from lj_image.release.senders import engine_sender, sender_for
from standins.assembled import built_as, tiny_image

IMAGES = Path(__file__).parents[2] / "images"


@pytest.fixture
def name(scratch: Scratch) -> str:
    return f"{scratch.name('assembled')}:{secrets.token_hex(4)}"


def files_in(engine: docker.APIClient, image: str, scratch: Scratch) -> set[str]:
    """Return the paths of an image's files, from a container that never runs."""
    container = engine.create_container(image, ["/nothing"], labels=scratch.labels)["Id"]
    try:
        content = b"".join(engine.export(container))
    finally:
        engine.remove_container(container, v=True)
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        return set(tar.getnames())


def test_an_image_is_loaded_once_and_holds_its_files(
    engine: docker.APIClient, scratch: Scratch, name: str, tmp_path: Path
) -> None:
    image, said = tiny_image(tmp_path, name, "two", name="x:1", labels=scratch.labels), list[str]()
    loaded = load_image(engine, image, name, say=said.append)
    assert load_image(engine, image, name, say=said.append) == loaded
    assert len(said) == 1
    assert loaded in (str(image.image_id), str(image.descriptor and image.descriptor.digest))
    assert {name, "two"} <= files_in(engine, loaded, scratch)


def test_a_second_image_brings_only_its_own_layers(
    engine: docker.APIClient, scratch: Scratch, name: str, tmp_path: Path
) -> None:
    first, said = tiny_image(tmp_path, name, "two", name="x:1", labels=scratch.labels), list[str]()
    load_image(engine, first, name, say=said.append)
    second = tiny_image(tmp_path, "three", name="x:2", below=first)
    loaded = load_image(engine, second, f"{name}-second", say=said.append)
    assert {name, "two", "three"} <= files_in(engine, loaded, scratch)
    driver = dict(engine.info()["DriverStatus"]).get("driver-type", "")
    if not driver.startswith("io.containerd"):
        assert said[1].endswith("1 layers, 0.0 MiB; it has the other 2")


def test_a_damaged_layer_is_told_and_nothing_is_loaded(
    engine: docker.APIClient, scratch: Scratch, name: str, tmp_path: Path
) -> None:
    image = tiny_image(tmp_path, name, name="x:1", labels=scratch.labels)
    damage(image, tmp_path)
    with pytest.raises((ArtifactError, EngineError)):
        load_image(engine, image, name, say=print)
    assert not engine.images(name=name)


def damage(image: SourceImage, cache_dir: Path) -> None:
    """Change a byte of the layer."""
    descriptor = image.layers[0].descriptor
    assert descriptor is not None
    blob = cache_dir / "oci" / "blobs" / "sha256" / descriptor.digest.hex
    content = blob.read_bytes()
    blob.chmod(0o644)
    blob.write_bytes(content[:40] + bytes([content[40] ^ 0xFF]) + content[41:])


def test_an_assembled_image_is_published_through_an_engine(
    engine: docker.APIClient, registry: str, scratch: Scratch, name: str, tmp_path: Path
) -> None:
    image = tiny_image(tmp_path, name, name=name, labels=scratch.labels)
    config, built = Config(None, ConfigFile(), tmp_path), built_as(image, name)
    release = resolve(Catalog(IMAGES), config, "25.02", variant="serverless", only_configured=False)
    sender = engine_sender(built, release, engine, config, print)
    assert sender.digests(built.image_id) == (built.manifest,)
    place = f"{registry}/{name}"
    digest = sender.push(built.image_id, place)
    assert sender.remote_digest(place) == digest


def published(sender: Sender, built: Built, release: Release, place: str) -> list[tuple[str, str | None]]:
    """Publish an image at a place, and return what became of it."""
    target = Target(release.endpoints.public(), place, place)
    results = sender.push_everywhere(built.image_id, [target], PLAINLY, lambda result: None)
    return [(result.state, result.digest) for result in results or ()]


def test_an_assembled_image_is_published_without_an_engine(
    registry: str, scratch: Scratch, name: str, tmp_path: Path
) -> None:
    image = tiny_image(tmp_path, name, "two", name=name, labels=scratch.labels)
    config, built = Config(None, ConfigFile(), tmp_path), built_as(image, name)
    release = resolve(Catalog(IMAGES), config, "25.02", variant="serverless", only_configured=False)
    sender = sender_for(built, release, Means(config, publish_content), print, connect=no_engine)
    place = f"{registry}/{name}"
    assert sender.remote_digest(place) is None
    for state in ("published", "already"):
        assert published(sender, built, release, place) == [(state, built.manifest)]
        assert sender.remote_digest(place) == built.manifest


def test_what_was_published_without_an_engine_is_pulled_by_one_as_the_same_image(
    engine: docker.APIClient, registry: str, scratch: Scratch, name: str, tmp_path: Path
) -> None:
    image = tiny_image(tmp_path, name, name=name, labels=scratch.labels)
    config, built = Config(None, ConfigFile(), tmp_path), built_as(image, name)
    release = resolve(Catalog(IMAGES), config, "25.02", variant="serverless", only_configured=False)
    place = f"{registry}/{name}"
    sender = sender_for(built, release, Means(config, publish_content), print, connect=no_engine)
    assert published(sender, built, release, place) == [("published", built.manifest)]
    engine.pull(place)
    try:
        assert engine.inspect_image(place)["Id"] in (built.image_id, built.manifest)
    finally:
        engine.remove_image(place)


def no_engine() -> docker.APIClient:
    """Refuse to connect."""
    pytest.fail("an engine was asked for")
