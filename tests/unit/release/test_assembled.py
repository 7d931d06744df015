"""An assembled image where it lies: its own id in records, the engine's in engines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lj_image.builders.docker.push import EngineSender
from lj_image.builders.docker.push_progress import PushProgress
from lj_image.builders.oci.layer_cache import LayerCache
from lj_image.catalog.release import Release
from lj_image.config import Config
from lj_image.errors import ArtifactError, PublishError
from lj_image.oci.content import Content
from lj_image.oci.source import SourceImage
from lj_image.registry.publishing.place import Place, Placed
from lj_image.release import proof
from lj_image.release.assembled import assembled_image, cached_layout, engine_id, identity, load_named
from lj_image.release.means import Means
from lj_image.release.outcome import PLAINLY, Result, Wishes
from lj_image.release.record import Built, Record, Records
from lj_image.release.references import Target, targets
from lj_image.release.senders import AssembledSource, LoadedSender, RegistrySender, engine_sender, sender_for
from lj_image.verify.report import Check, VerifyReport
from lj_image.verify.subject import Subject
from standins.assembled import built_as, tiny_image
from unit.builders.docker.test_loading import Engine

STRANGE = "sha256:" + "7" * 64
"""What an engine on containerd calls the image."""


@pytest.fixture
def image(config: Config) -> SourceImage:
    return tiny_image(config.cache_dir, "one", "two")


def on_containerd(image: SourceImage) -> Engine:
    """Return an engine that has the image under an id of its own."""
    engine = Engine(containerd=True)
    settings = image.settings
    layers = [str(item) for item in settings.diff_ids]
    found = {"Id": STRANGE, "RootFS": {"Layers": layers}, "Config": {"Cmd": ["/nothing"]}}
    engine.by_name |= {"tiny:1": found, STRANGE: found}
    return engine


def say(line: str) -> None:
    """Say nothing."""


def test_the_cache_gives_the_image_of_a_record(image: SourceImage, config: Config) -> None:
    assert assembled_image(built_as(image), config).image_id == image.image_id
    with pytest.raises(ArtifactError, match="not in the cache any more"):
        assembled_image(replace(built_as(image), manifest=STRANGE), config)


def test_an_engine_gets_the_image_when_it_lacks_it(image: SourceImage, config: Config, release: Release) -> None:
    engine: Any = Engine()
    assert engine_id(built_as(image), release, engine, config, say) == str(image.image_id)
    assert engine_id(built_as(image), release, engine, config, say) == str(image.image_id)
    assert len(engine.sent) == 1


def test_an_image_that_an_engine_built_is_asked_for_by_its_id(
    image: SourceImage, config: Config, release: Release
) -> None:
    engine: Any = Engine()
    built = replace(built_as(image), builder="docker", manifest=None)
    assert engine_id(built, release, engine, config, say) == built.image_id
    assert identity(built, STRANGE, release, engine, config, say) == (STRANGE, STRANGE)
    assert engine.sent == []


def test_an_image_that_is_gone_from_the_cache_may_still_be_in_the_engine(
    image: SourceImage, config: Config, release: Release
) -> None:
    engine: Any = Engine()
    built = built_as(image)
    engine_id(built, release, engine, config, say)
    lost = replace(built, manifest=STRANGE)
    assert engine_id(lost, release, engine, config, say) == built.image_id
    with pytest.raises(ArtifactError, match="not in the cache"):
        engine_id(lost, release, Engine(), config, say)  # type: ignore[arg-type]


@pytest.mark.parametrize("named", ["own", "engine's"])
def test_own_and_engines_id_are_told_apart_whichever_is_named(
    named: str, image: SourceImage, config: Config, release: Release
) -> None:
    engine: Any = on_containerd(image)
    built = built_as(image)
    asked = built.image_id if named == "own" else STRANGE
    assert identity(built, asked, release, engine, config, say) == (built.image_id, STRANGE)
    assert engine.sent == []


def test_another_image_stays_itself(image: SourceImage, config: Config, release: Release) -> None:
    engine: Any = on_containerd(image)
    other = "sha256:" + "8" * 64
    assert identity(built_as(image), other, release, engine, config, say) == (other, other)
    assert identity(None, other, release, engine, config, say) == (other, other)


def test_a_proof_holds_for_the_built_image_whatever_the_engine_calls_it(
    image: SourceImage, config: Config, release: Release, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    records = Records(tmp_path, release.image)
    built = built_as(image)
    records.update(release.key, lambda _: Record(release.image, release.name, release.variant, built))
    plan: Any = SimpleNamespace(release=release, key=release.key)
    workshop: Any = SimpleNamespace(api=on_containerd(image), config=config, records=records, say=say)
    asked: list[str] = []

    def verify(subject: Subject, **options: object) -> VerifyReport:
        asked.append(subject.image_id)
        return VerifyReport(subject.image_id, (Check("component[x]", "x", "passed"),))

    monkeypatch.setattr("lj_image.verify.runner.verify", verify)
    monkeypatch.setattr(proof, "subject_of", lambda plan, image_id, workshop: Subject(plan=plan, image_id=image_id))
    report, record = proof.prove(plan, built.image_id, workshop, junit=None)
    assert asked == [STRANGE]
    assert report.image_id == built.image_id
    assert record.proves(built.image_id)


def test_a_reference_that_only_the_cache_has_is_loaded(image: SourceImage, config: Config) -> None:
    engine: Any = Engine()
    assert load_named("tiny:1", engine, config, say) == str(image.image_id)
    assert load_named("tiny:2", engine, config, say) is None
    assert cached_layout("tiny:1", config) == config.cache_dir / "oci"


def test_a_cache_without_images_names_none(config: Config) -> None:
    assert cached_layout("tiny:1", config) is None
    assert not (config.cache_dir / "oci").exists()


def fail() -> Any:
    """Be called for nothing."""
    pytest.fail("an engine was asked for")


def quiet(result: Result) -> None:
    """Hear of a place, and do nothing."""


class Far:
    """What publishes, and keeps what it was given."""

    def __init__(self, *, fails: Exception | None = None) -> None:
        self.fails = fails
        self.origins: list[str] = []

    def __call__(self, content: Content, places: Sequence[Place], **options: Any) -> tuple[Placed, ...]:
        if self.fails:
            raise self.fails
        self.origins = [blob.origin for blob in content.blobs]
        digest = content.root.descriptor.digest
        return tuple(Placed(place, "published", digest) for place in places)


def sent_from(config: Config, release: Release, built: Built, far: Far) -> RegistrySender:
    return RegistrySender(built, AssembledSource(built, release, config, say), Means(config, far))


@pytest.fixture
def places(release: Release, config: Config) -> tuple[Target, ...]:
    return targets(release, "tiny", ("cn-beijing",), True, config)


def test_an_assembled_image_is_published_from_the_cache(
    image: SourceImage, config: Config, release: Release, places: tuple[Target, ...]
) -> None:
    built = built_as(image)
    sender = sent_from(config, release, built, Far())
    assert sender.digests(built.image_id) == (built.manifest,)
    results = sender.push_everywhere(built.image_id, places, PLAINLY, quiet)
    assert [(result.target, result.state, result.digest) for result in results] == [
        (place, "published", built.manifest) for place in places
    ]


def test_an_image_that_is_not_in_the_cache_is_not_published(
    image: SourceImage, config: Config, release: Release, places: tuple[Target, ...]
) -> None:
    sender = sent_from(config, release, replace(built_as(image), manifest=STRANGE), Far())
    assert sender.digests(str(image.image_id)) is None
    assert sender.digests("sha256:other") is None
    with pytest.raises(PublishError, match="cannot be read"):
        sender.push_everywhere(str(image.image_id), places, PLAINLY, quiet)
    with pytest.raises(PublishError, match="no image sha256:other"):
        sender.push_everywhere("sha256:other", places, PLAINLY, quiet)


def test_a_layer_that_only_the_bases_registry_has_is_taken_from_there(
    image: SourceImage, config: Config, release: Release, places: tuple[Target, ...]
) -> None:
    built, far = replace(built_as(image), base="r.example/team/base:1@sha256:0"), Far()
    descriptor = image.layers[0].descriptor
    assert descriptor is not None
    (config.cache_dir / "oci" / "blobs" / "sha256" / descriptor.digest.hex).unlink()
    sent_from(config, release, built, far).push_everywhere(built.image_id, places, PLAINLY, quiet)
    assert far.origins == ["r.example/team/base", "", ""]


def test_an_image_needs_no_engine_to_be_published(image: SourceImage, config: Config, release: Release) -> None:
    engine: Any = Engine()
    means, built = Means(config, Far()), built_as(image)
    for other in (built, replace(built, builder="docker", manifest=None), None):
        assert isinstance(sender_for(other, release, means, say, connect=fail), RegistrySender)
    by_engine = sender_for(built, release, means, say, connect=lambda: engine, via_engine=True)
    assert isinstance(by_engine, LoadedSender)


def test_what_a_push_fails_with_is_told_as_it_is(
    image: SourceImage, config: Config, release: Release, places: tuple[Target, ...]
) -> None:
    sender = sent_from(config, release, built_as(image), Far(fails=PublishError("denied")))
    with pytest.raises(PublishError, match="denied"):
        sender.push_everywhere(str(image.image_id), places, PLAINLY, quiet)


class Near:
    """An engine's sender that notes which ids it is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def digests(self, image_id: str) -> Sequence[str] | None:
        self.asked.append(image_id)
        return (image_id,)

    def remote_digest(self, sent_to: str) -> str | None:
        return f"digest of {sent_to}"

    def push(self, image_id: str, sent_to: str, progress: PushProgress | None = None) -> str:
        self.asked.append(image_id)
        return "sha256:pushed"

    def push_everywhere(
        self, image_id: str, targets: Sequence[Target], wishes: Wishes, settled: object
    ) -> tuple[Result, ...] | None:
        return None

    is_parallel = False

    def cut_off(self) -> None:
        """Do nothing."""


def test_through_an_engine_the_image_goes_under_the_engines_own_id(
    image: SourceImage, config: Config, release: Release
) -> None:
    engine: Any = on_containerd(image)
    built, near = built_as(image), Near()
    sender = LoadedSender(near, built, release, engine, config, say)
    assert sender.digests(built.image_id) == (STRANGE, built.manifest)
    assert sender.push(built.image_id, "r.example/tiny:1") == "sha256:pushed"
    assert sender.remote_digest("x") == "digest of x"
    assert near.asked == [STRANGE, STRANGE]
    assert sender.digests("sha256:other") == ("sha256:other",)


def test_nothing_is_loaded_into_an_engine_before_it_is_to_be_pushed(
    image: SourceImage, config: Config, release: Release
) -> None:
    engine: Any = Engine()
    built = built_as(image)
    sender = LoadedSender(Near(), built, release, engine, config, say)
    assert sender.digests(built.image_id) == (built.manifest,)
    assert engine.sent == []
    sender.push(built.image_id, "r.example/tiny:1")
    assert len(engine.sent) == 1


def test_an_image_that_neither_engine_nor_cache_has_is_not_published(
    image: SourceImage, config: Config, release: Release
) -> None:
    engine: Any = Engine()
    lost = replace(built_as(image), manifest=STRANGE)
    assert LoadedSender(Near(), lost, release, engine, config, say).digests(lost.image_id) is None


def test_an_image_that_an_engine_built_is_published_by_it_alone(
    image: SourceImage, config: Config, release: Release
) -> None:
    engine: Any = Engine()
    for built in (None, replace(built_as(image), builder="docker")):
        assert isinstance(engine_sender(built, release, engine, config, say), EngineSender)
    assert isinstance(engine_sender(built_as(image), release, engine, config, say), LoadedSender)


def test_before_anything_is_built_registries_are_asked_without_an_engine(
    config: Config, release: Release, places: tuple[Target, ...]
) -> None:
    sender = sender_for(None, release, Means(config, Far()), say, connect=fail)
    assert sender.digests(STRANGE) is None
    with pytest.raises(PublishError, match="no image"):
        sender.push_everywhere(STRANGE, places, PLAINLY, quiet)


def test_gc_waits_for_a_push_to_end(
    image: SourceImage, config: Config, release: Release, places: tuple[Target, ...]
) -> None:
    asked: list[bool] = []

    class Watching(Far):
        def __call__(self, content: Content, places: Sequence[Place], **options: Any) -> tuple[Placed, ...]:
            with LayerCache(config.cache_dir).alone(wait=False) as is_alone:
                asked.append(is_alone)
            return super().__call__(content, places)

    sent_from(config, release, built_as(image), Watching()).push_everywhere(str(image.image_id), places, PLAINLY, quiet)
    assert asked == [False]
