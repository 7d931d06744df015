"""A release as a file that says what it is, and what is made of it on the other side; nothing here asks a registry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lj_image.catalog.release import Release
from lj_image.config import Config, ConfigFile, EndpointsConfig
from lj_image.errors import ArtifactError, Interrupted, PublishError, UsageError
from lj_image.oci.content import Content, content_of, content_of_images
from lj_image.oci.copying import copy_into
from lj_image.oci.digest import Digest
from lj_image.oci.layout import Layout
from lj_image.registry.publishing.place import Place, Placed
from lj_image.release.importing import (
    check,
    content_of_parcel,
    import_parcel,
    platforms_of,
    require_same,
    target_at,
)
from lj_image.release.means import Means
from lj_image.release.mirror import (
    Parcel,
    export,
    is_tar,
    parcel_in,
    parcels_in,
    passport_of,
    require_exportable,
)
from lj_image.release.outcome import Outcome, Wishes
from lj_image.release.record import Built, Pushed, Record, Records, Verified
from lj_image.release.references import Target, targets
from samples.images import AMD64, ARM64, image

NOW = "2025-02-01T00:00:00+00:00"
IMAGE_ID = "sha256:" + "1" * 64
OTHER = Digest("b" * 64)
KEY = "25.02-serverless"
BUILT = Built(IMAGE_ID, "x:t", "i", "p", "l", "oci", "base", NOW, 1.0, 1)
PROOF = Verified(IMAGE_ID, True, 3, (), {}, NOW)
RECORD = Record("training-nv-pytorch", "25.02", "serverless", BUILT, PROOF)


def written(content: Content, release: Release, path: Path, proof: Any = "passed") -> Path:
    return export(content, passport_of(release, release.tag, proof), "r.example/x:1", path, lambda by_bytes: None).path


@pytest.fixture
def content(tmp_path: Path) -> Content:
    return content_of(image(tmp_path / "source"))


@pytest.fixture(params=["25.02.tar", "25.02"])
def exported(request: pytest.FixtureRequest, content: Content, release: Release, tmp_path: Path) -> Path:
    return written(content, release, tmp_path / "out" / request.param)


class Publisher:
    """Publishes everything everywhere, unless it is told otherwise."""

    def __init__(self) -> None:
        self.places: tuple[Place, ...] = ()
        self.wishes: dict[str, Any] = {}
        self.broken: set[str] = set()

    def __call__(self, content: Content, places: Sequence[Place], **wishes: Any) -> tuple[Placed, ...]:
        self.places, self.wishes = tuple(places), wishes
        return tuple(self.placed(content, place) for place in places)

    def placed(self, content: Content, place: Place) -> Placed:
        digest = content.root.descriptor.digest
        if place.destination.name in self.broken:
            return Placed(place, "failed", error=PublishError("it is down", hint="start it"))
        return Placed(place, "published", digest, {place.tags[0]: OTHER}, None, ("no attestations",))


@pytest.fixture
def publisher() -> Publisher:
    return Publisher()


Import = Callable[..., Outcome]


@pytest.fixture
def bring(exported: Path, release: Release, config: Config, publisher: Publisher) -> Import:
    def call(places: Sequence[Target] | None = None, **options: Any) -> Outcome:
        places = places or targets(release, release.tag, ("cn-beijing",), True, config)
        options = {"wishes": Wishes(), "means": Means(config, publisher)} | options
        return import_parcel(exported, parcel_in(exported, None), places, key=KEY, **options)

    return call


def test_a_file_says_which_release_it_holds_and_whether_that_was_verified(exported: Path, content: Content) -> None:
    (parcel,) = parcels_in(exported)
    assert parcel.passport is not None
    assert (parcel.passport.image, parcel.passport.release, parcel.passport.variant) == (
        *("training-nv-pytorch", "25.02", "serverless"),
    )
    assert (parcel.passport.tag, parcel.passport.repository, parcel.passport.proof) == (
        *("25.02-serverless", "egslingjun/training-nv-pytorch", "passed"),
    )
    assert parcel.descriptor.digest == content.root.descriptor.digest


@pytest.mark.parametrize("name", [None, "25.02", "training-nv-pytorch/25.02", "25.02-serverless", "r.example/x:1"])
def test_what_is_inside_is_named_as_people_do(exported: Path, name: str | None) -> None:
    assert parcel_in(exported, name).known_as[0] == "25.02"


def test_an_unknown_name_and_one_too_few_tell_what_is_inside(
    exported: Path, release: Release, tmp_path: Path, content: Content
) -> None:
    with pytest.raises(UsageError, match=r"has nothing called '25\.03'") as raised:
        parcel_in(exported, "25.03")
    assert "25.02" in (raised.value.hint or "")
    folder = written(content, release, tmp_path / "two")
    copy_into(Layout.open(folder), image(tmp_path / "blobs", cmd=("other",)), "other")
    with pytest.raises(UsageError, match=r"holds other; 25\.02|holds 25\.02; other"):
        parcel_in(folder, None)


def test_everything_reaches_every_place_under_the_release_tag(
    bring: Import, publisher: Publisher, content: Content
) -> None:
    outcome = bring()
    assert [place.destination.name for place in publisher.places] == ["public", "cn-beijing"]
    assert {place.tags[0] for place in publisher.places} == {"25.02-serverless"}
    assert {result.digest for result in outcome.results} == {str(content.root.descriptor.digest)}
    assert outcome.verified
    assert outcome.error() is None
    assert str(OTHER) in outcome.results[0].message
    assert "no attestations" in outcome.results[0].notes


def test_a_place_that_fails_is_told_beside_those_that_have_it(bring: Import, publisher: Publisher) -> None:
    publisher.broken = {"cn-beijing"}
    outcome = bring(wishes=Wishes(all_or_nothing=True, force_tag=True, dry_run=False))
    error = outcome.error()
    assert error is not None
    assert error.exit_code == 3
    assert "it is down" in error.message
    assert publisher.wishes["all_or_nothing"]
    assert publisher.wishes["force_tag"]


def test_two_names_of_one_place_are_published_once(
    bring: Import, publisher: Publisher, release: Release, config_with: Callable[..., Config]
) -> None:
    rules = {"acs-registry-vpc.{region}.cr.aliyuncs.com": "one.example"}
    places = targets(release, release.tag, ("cn-beijing", "cn-shanghai"), False, config_with(**rules))
    outcome = bring(places)
    assert len(publisher.places) == 1
    assert [result.state for result in outcome.results] == ["published", "published"]


def test_ctrl_c_is_told_with_the_way_to_go_on(bring: Import, config: Config) -> None:
    def interrupted(*arguments: Any, **options: Any) -> tuple[Placed, ...]:
        raise KeyboardInterrupt

    with pytest.raises(Interrupted) as raised:
        bring(means=Means(config, interrupted))
    assert "again" in (raised.value.hint or "")


def test_what_is_published_is_put_in_the_record_that_knows_its_digest(
    bring: Import, content: Content, tmp_path: Path
) -> None:
    records = Records(tmp_path / "cache", "training-nv-pytorch")
    digest = str(content.root.descriptor.digest)
    records.update(KEY, lambda _: replace(RECORD, built=replace(BUILT, manifest=digest)))
    bring(records=records)
    record = records.read(KEY)
    assert record is not None
    assert [(item.network, item.digest, item.verified, item.image_id) for item in record.pushed] == [
        ("public", digest, True, IMAGE_ID),
        ("vpc", digest, True, IMAGE_ID),
    ]
    bring(records=records, wishes=Wishes(dry_run=True))
    assert records.read(KEY) == record


def test_without_a_record_none_is_made(bring: Import, tmp_path: Path) -> None:
    records = Records(tmp_path / "cache", "training-nv-pytorch")
    bring(records=records)
    assert records.read(KEY) is None


def test_a_record_that_has_another_image_is_not_passed_over(bring: Import, tmp_path: Path) -> None:
    records = Records(tmp_path / "cache", "training-nv-pytorch")
    known = Pushed("r/x:t", "r/x:t", str(OTHER), IMAGE_ID, "public", None, True, NOW)
    records.update(KEY, lambda _: replace(RECORD, pushed=(known,)))
    with pytest.raises(PublishError, match=f"is not what the record of .* has: {OTHER}"):
        bring(records=records)


def test_what_was_exported_without_proof_is_refused_unless_that_is_wished(
    content: Content, release: Release, config: Config, publisher: Publisher, tmp_path: Path
) -> None:
    path = written(content, release, tmp_path / "a.tar", "none")
    places = targets(release, release.tag, (), True, config)
    means, parcel = Means(config, publisher), parcel_in(path, None)
    with pytest.raises(PublishError, match="was not verified when it was exported"):
        import_parcel(path, parcel, places, wishes=Wishes(), means=means)
    assert not import_parcel(path, parcel, places, verify=False, wishes=Wishes(), means=means).verified


def test_another_digest_than_the_one_that_was_told_is_refused(exported: Path) -> None:
    with pytest.raises(ArtifactError, match=f"and not {OTHER}"):
        content_of_parcel(exported, parcel_in(exported, None), OTHER)


def test_a_release_of_other_manifests_is_not_published_under_their_names(exported: Path, release: Release) -> None:
    parcel = parcel_in(exported, None)
    require_same(parcel, release, exported)
    with pytest.raises(UsageError, match=r"has 25\.02-serverless, and .* is 25\.02-changed"):
        require_same(parcel, replace(release, tag="25.02-changed"), exported)


@pytest.mark.parametrize(
    ("place", "reference"),
    [
        ("staging", "staging.example/egslingjun/training-nv-pytorch:25.02-serverless"),
        ("r.example:5000", "r.example:5000/egslingjun/training-nv-pytorch:25.02-serverless"),
        ("r.example/team", "r.example/team/egslingjun/training-nv-pytorch:25.02-serverless"),
        ("r.example/team/x:y", "r.example/team/x:y"),
    ],
)
def test_a_place_needs_no_manifest(exported: Path, config: Config, place: str, reference: str) -> None:
    with_place = replace(config, values=ConfigFile(endpoints=EndpointsConfig(places={"staging": "staging.example"})))
    assert target_at(place, parcel_in(exported, None), with_place).sent_to == reference
    with pytest.raises(UsageError, match="unknown place 'stagin'") as raised:
        target_at("stagin", parcel_in(exported, None), with_place)
    assert "staging" in (raised.value.hint or "")


def test_a_layout_of_another_tool_needs_its_whole_name(tmp_path: Path, config: Config) -> None:
    layout = Layout.create(tmp_path / "layout")
    copy_into(layout, image(tmp_path / "blobs"), "1.0")
    parcel = parcel_in(layout.folder, "1.0")
    assert parcel.passport is None
    assert target_at("r.example/a/b:c", parcel, config).sent_to == "r.example/a/b:c"
    with pytest.raises(UsageError, match="does not say which release") as raised:
        target_at("r.example/a/b", parcel, config)
    assert "HOST/PATH:TAG" in (raised.value.hint or "")


def test_a_check_reads_every_byte(content: Content, release: Release, tmp_path: Path) -> None:
    folder = written(content, release, tmp_path / "out")
    seen: list[int] = []
    check(content_of_parcel(folder, parcel_in(folder, None)), seen.append)
    assert sum(seen) == content.size_bytes
    largest = max(folder.glob("blobs/sha256/*"), key=lambda path: path.stat().st_size)
    largest.chmod(0o644)
    with largest.open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"x")
    with pytest.raises(ArtifactError, match=f"the blob sha256:{largest.name} has other bytes"):
        check(content_of_parcel(folder, parcel_in(folder, None)), seen.append)


def test_platforms_are_those_of_the_images(tmp_path: Path) -> None:
    images = [image(tmp_path, platform=of) for of in (AMD64, ARM64)]
    assert platforms_of(content_of_images(images, "x")) == ("linux/amd64", "linux/arm64")


def test_a_path_says_whether_it_becomes_a_file_or_a_folder(tmp_path: Path) -> None:
    assert is_tar(tmp_path / "25.02.tar")
    assert not is_tar(tmp_path / "25.02")
    (tmp_path / "folder.tar").mkdir()
    (tmp_path / "file").touch()
    for name, words in (("x.tar.gz", "compressed"), ("folder.tar", "is a folder"), ("file", "is a file")):
        with pytest.raises(UsageError, match=words):
            is_tar(tmp_path / name)


def test_what_is_no_proven_release_is_not_exported() -> None:
    assert require_exportable(RECORD, KEY, verify=True) == "passed"
    with pytest.raises(PublishError, match="has not been built on this machine") as raised:
        require_exportable(None, KEY, verify=True)
    assert "--from" in (raised.value.hint or "")
    with pytest.raises(PublishError, match="not verified"):
        require_exportable(replace(RECORD, verified=None), KEY, verify=True)
    assert require_exportable(replace(RECORD, verified=None), KEY, verify=False) == "none"
    for changes in ({"partial": True}, {"overridden": {"vllm": "0"}}):
        with pytest.raises(PublishError, match=r"partial|--set"):
            require_exportable(replace(RECORD, built=replace(BUILT, **changes)), KEY, verify=False)  # type: ignore[arg-type]


def test_a_parcel_is_known_by_its_digest_too(exported: Path) -> None:
    parcel: Parcel = parcel_in(exported, None)
    assert parcel_in(exported, str(parcel.descriptor.digest)) == parcel
