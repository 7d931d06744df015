"""Content published to places in memory: the order of things, tags, kinds of registries, places that fail alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fake_registry import HOST, FakeRegistry, error

from lj_image.errors import ArtifactError, LjImageError
from lj_image.oci.capabilities import Capabilities
from lj_image.oci.content import Content, content_of
from lj_image.oci.digest import Digest
from lj_image.oci.media_types import MediaType
from lj_image.registry.access import Access, Patience
from lj_image.registry.client import Registry
from lj_image.registry.publishing.fitting import fitted
from lj_image.registry.publishing.place import Place, Placed
from lj_image.registry.publishing.publish import publish_content
from lj_image.registry.transfer.delivery import Destination
from samples.attested import attested
from samples.images import image

TAG = "25.02"
STRANGER = b'{"schemaVersion": 2}'
Put = Callable[..., tuple[Place, FakeRegistry]]


@pytest.fixture
def one(tmp_path: Path) -> Content:
    return content_of(image(tmp_path / "blobs"))


@pytest.fixture
def put() -> Iterator[Put]:
    opened: list[Registry] = []

    def make(name: str = "north", *more: str, takes: Capabilities | None = None) -> tuple[Place, FakeRegistry]:
        fake = FakeRegistry()
        registry = Registry(
            Access(HOST, patience=Patience(attempts=2)),
            intent="push",
            capabilities=takes or Capabilities(upload="put"),
            credentials=lambda _: None,
            transport=fake.transport(),
            sleep=lambda _: None,
            environ={},
        )
        opened.append(registry)
        return Place(Destination(name, registry, "team/x"), (TAG, *more)), fake

    yield make
    for registry in opened:
        registry.close()


class Watched:
    def __init__(self) -> None:
        self.settled: dict[str, LjImageError | None] = {}
        self.said: list[str] = []

    def expects(self, destination: Destination, total_bytes: int) -> None:
        """Do nothing."""

    def advances(self, destination: Destination, by_bytes: int) -> None:
        """Do nothing."""

    def says(self, destination: Destination, words: str) -> None:
        self.said.append(words)

    def settles(self, destination: Destination, error: LjImageError | None) -> None:
        self.settled[destination.name] = error


def tags_of(fake: FakeRegistry) -> dict[str, bytes]:
    return {
        name: content for name, (content, _) in fake.manifests.get("team/x", {}).items() if not name.startswith("sha")
    }


def refusing(method: str, status: int, code: str, ends: str = "", times: int = 1) -> Callable[[httpx.Request], Any]:
    left = [times]

    def answer(request: httpx.Request) -> httpx.Response | None:
        if request.method == method and request.url.path.endswith(ends) and left[0]:
            left[0] -= 1
            return error(status, code, "no")
        return None

    return answer


def publish(content: Content, *places: tuple[Place, FakeRegistry], **options: Any) -> tuple[Placed, ...]:
    return publish_content(content, [place for place, _ in places], **options)


def test_a_place_gets_blobs_then_documents_then_tags(one: Content, put: Put) -> None:
    place, fake = put("north", "latest")
    (placed,) = publish(one, (place, fake))
    assert (placed.state, placed.digest) == ("published", one.root.descriptor.digest)
    assert tags_of(fake) == {TAG: one.root.content, "latest": one.root.content}
    puts = [path.rpartition("/")[2] for path in fake.paths("PUT")]
    assert puts[-3:] == [str(one.root.descriptor.digest), TAG, "latest"]
    assert len(puts) == len(one.blobs) + 3
    assert set(fake.blobs["team/x"]) == {str(blob.descriptor.digest) for blob in one.blobs}


def test_the_same_again_sends_nothing_at_all(one: Content, put: Put) -> None:
    place, fake = put("north", "latest")
    publish(one, (place, fake))
    fake.asked.clear()
    (placed,) = publish(one, (place, fake))
    assert placed.state == "already"
    assert {request.method for request in fake.asked} == {"HEAD"}
    assert len(fake.asked) == 2


def test_what_one_place_has_its_neighbours_get_by_mount(one: Content, put: Put) -> None:
    place, fake = put("north")
    publish(one, (place, fake))
    destination = Destination("south", place.destination.registry, "team/y")
    fake.asked.clear()
    _, south = publish_content(one, [place, Place(destination, (TAG,))])
    assert south.delivery is not None
    assert (south.delivery.mounted, south.delivery.sent) == (len(one.blobs), 0)


def test_a_moving_tag_follows_and_what_it_held_is_told(one: Content, put: Put) -> None:
    place, fake = put("north", "latest")
    publish(one, (place, fake))
    fake.manifests["team/x"]["latest"] = (STRANGER, MediaType.OCI_MANIFEST)
    fake.asked.clear()
    (placed,) = publish(one, (place, fake))
    assert (placed.state, placed.previous) == ("published", {"latest": Digest.of(STRANGER)})
    assert tags_of(fake)["latest"] == one.root.content
    assert fake.paths("POST") == [], "the image is there: a tag of it says so"


def test_a_tag_that_holds_something_else_is_refused_and_moves_by_force(one: Content, put: Put) -> None:
    place, fake = put()
    fake.manifests["team/x"] = {TAG: (STRANGER, MediaType.OCI_MANIFEST)}
    (refused,) = publish(one, (place, fake))
    assert refused.state == "refused"
    assert refused.error is not None
    assert str(Digest.of(STRANGER)) in refused.error.message
    assert fake.paths("POST") == []
    (forced,) = publish(one, (place, fake), force_tag=True)
    assert (forced.state, forced.previous) == ("published", {TAG: Digest.of(STRANGER)})


def test_a_dry_run_asks_only(one: Content, put: Put) -> None:
    place, fake = put()
    (placed,) = publish(one, (place, fake), dry_run=True)
    assert placed.state == "planned"
    assert {request.method for request in fake.asked} <= {"HEAD", "GET"}


def test_a_place_that_fails_fails_alone(one: Content, put: Put) -> None:
    well, ill, watched = put("north"), put("south"), Watched()
    ill[1].before += [refusing("PUT", 403, "DENIED", ends="", times=99)] * 99
    north, south = publish(one, well, ill, watcher=watched)
    assert (north.state, south.state) == ("published", "failed")
    assert south.error is not None
    assert tags_of(ill[1]) == {}
    assert watched.settled["north"] is None
    assert watched.settled["south"] is not None


def test_all_or_nothing_moves_no_tag_unless_every_place_is_ready(one: Content, put: Put) -> None:
    well, ill = put("north"), put("south")
    ill[1].before += [refusing("PUT", 403, "DENIED", times=99)] * 99
    north, south = publish(one, well, ill, all_or_nothing=True)
    assert (north.state, south.state) == ("withheld", "failed")
    assert tags_of(well[1]) == {}
    assert set(well[1].blobs["team/x"]) == {str(blob.descriptor.digest) for blob in one.blobs}, "but all of it is there"
    ill[1].before.clear()
    assert [placed.state for placed in publish(one, well, ill, all_or_nothing=True)] == ["published"] * 2


def test_all_or_nothing_sends_nothing_where_one_place_refuses_beforehand(one: Content, put: Put) -> None:
    well, ill = put("north"), put("south")
    ill[1].manifests["team/x"] = {TAG: (STRANGER, MediaType.OCI_MANIFEST)}
    north, south = publish(one, well, ill, all_or_nothing=True)
    assert (north.state, south.state) == ("withheld", "refused")
    assert well[1].paths("POST") == []


def test_a_tag_that_moves_after_it_was_set_is_a_conflict(one: Content, put: Put) -> None:
    place, fake = put()

    def move(request: httpx.Request) -> httpx.Response | None:
        if request.method == "GET" and request.url.path.endswith(TAG) and tags_of(fake):
            return httpx.Response(200, content=STRANGER, headers={"Content-Type": MediaType.OCI_MANIFEST})
        return None

    fake.before.append(move)
    (placed,) = publish(one, (place, fake))
    assert placed.state == "failed"
    assert placed.error is not None
    assert str(Digest.of(STRANGER)) in placed.error.message
    assert str(one.root.descriptor.digest) in placed.error.message


def test_a_tag_that_moves_before_it_is_set_is_not_written_over(one: Content, put: Put) -> None:
    place, fake = put()
    asked = []

    def move(request: httpx.Request) -> httpx.Response | None:
        if request.method == "HEAD" and request.url.path.endswith(TAG):
            asked.append(request)
            if len(asked) == 2:
                fake.manifests["team/x"][TAG] = (STRANGER, MediaType.OCI_MANIFEST)
        return None

    fake.before.append(move)
    (placed,) = publish(one, (place, fake))
    assert placed.state == "failed"
    assert tags_of(fake) == {TAG: STRANGER}


def test_a_registry_that_lags_is_asked_again(one: Content, put: Put) -> None:
    place, fake = put()
    watched = Watched()
    fake.before.append(refusing("PUT", 404, "MANIFEST_BLOB_UNKNOWN", ends=str(one.root.descriptor.digest)))
    (placed,) = publish(one, (place, fake), watcher=watched)
    assert placed.state == "published"
    assert any("does not know yet" in words for words in watched.said)


@pytest.mark.parametrize("status", [400, 413, 415])
def test_a_manifest_that_is_refused_is_told_with_its_type(one: Content, put: Put, status: int) -> None:
    place, fake = put()
    fake.before.append(refusing("PUT", status, "MANIFEST_INVALID", ends=str(one.root.descriptor.digest)))
    (placed,) = publish(one, (place, fake))
    assert placed.state == "failed"
    assert placed.error is not None
    assert MediaType.OCI_MANIFEST in placed.error.message
    assert tags_of(fake) == {}


def test_a_kind_that_refuses_attestations_gets_the_image_without(one: Content, put: Put) -> None:
    place, fake = put(takes=Capabilities(profile="acr", upload="put", attestations=False))
    other = put("south")
    acr, south = publish(attested(one), (place, fake), other)
    assert acr.digest == one.root.descriptor.digest
    assert south.digest == attested(one).root.descriptor.digest
    assert len(acr.notes) == 1
    assert "without attestations" in acr.notes[0]
    assert str(south.digest) in acr.notes[0]
    assert south.notes == ()
    assert set(fake.blobs["team/x"]) == {str(blob.descriptor.digest) for blob in one.blobs}


@pytest.mark.parametrize("status", [400, 403])
def test_a_registry_that_turns_out_to_refuse_attestations_gets_the_image_without(
    one: Content, put: Put, status: int
) -> None:
    place, fake = put()
    whole, watched = attested(one), Watched()
    attestation = whole.documents[-2].descriptor.digest
    fake.before += [refusing("PUT", status, "MANIFEST_INVALID", ends=str(attestation), times=9)]
    (placed,) = publish(whole, (place, fake), watcher=watched)
    assert (placed.state, placed.digest) == ("published", one.root.descriptor.digest)
    assert "without attestations" in placed.notes[0]
    assert watched.said == ["it refuses the attestations: published without them"]


def test_dockers_types_are_for_those_who_want_them(one: Content, put: Put) -> None:
    place, fake = put(takes=Capabilities(profile="old", upload="put", media_types="docker"))
    (placed,) = publish(one, (place, fake))
    assert placed.state == "published"
    assert placed.digest != one.root.descriptor.digest
    assert fake.manifests["team/x"][TAG][1] == MediaType.DOCKER_MANIFEST
    assert str(one.root.descriptor.digest) in placed.notes[0]


def test_what_a_kind_never_takes_is_told_before_anything_is_sent(tmp_path: Path, one: Content, put: Put) -> None:
    zstd = content_of(image(tmp_path / "z", media_type=MediaType.OCI_LAYER_ZSTD))
    for content, takes, words in (
        (zstd, Capabilities(profile="acr", zstd=False), "no layers in zstd"),
        (one, Capabilities(profile="small", largest_layer_bytes=10), "no layer above"),
        (one, Capabilities(profile="small", largest_manifest_bytes=10), "no manifest above"),
    ):
        place, fake = put(takes=takes)
        (placed,) = publish(content, (place, fake))
        assert placed.state == "refused"
        assert placed.error is not None
        assert words in placed.error.message
        assert fake.asked == []


def test_content_that_is_damaged_tags_nothing_anywhere(tmp_path: Path, one: Content, put: Put) -> None:
    blob = next(iter((tmp_path / "blobs/blobs/sha256").iterdir()))
    blob.chmod(0o644)
    blob.write_bytes(blob.read_bytes()[:-1] + b"?")
    places = put("north"), put("south")
    with pytest.raises(ArtifactError):
        publish(one, *places)
    assert [tags_of(fake) for _, fake in places] == [{}, {}]


def test_no_places_are_no_work(one: Content) -> None:
    assert publish_content(one, []) == ()


def test_what_fits_is_not_changed(one: Content) -> None:
    assert fitted(one, Capabilities()).content is one
