"""Documents and tags at registries that misbehave: a real one behind a proxy that refuses, lags and lies."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from lj_image.oci.capabilities import Capabilities
from lj_image.oci.content import Content, content_of
from lj_image.registry.access import Access, Patience
from lj_image.registry.client import Registry
from lj_image.registry.publishing.place import Place, Placed
from lj_image.registry.publishing.publish import publish_content
from lj_image.registry.transfer.delivery import Destination
from samples.attested import attested
from samples.images import image, layers_of
from standins.faults import Faulty, faulty
from standins.registries import Registry as Real
from standins.registries import running

TAG = "25.02"
Misbehaving = Callable[..., Faulty]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    with running(tmp_path_factory.mktemp("registry")) as registry:
        yield registry


@pytest.fixture
def repository() -> str:
    return f"publishing/{secrets.token_hex(4)}"


@pytest.fixture
def content(tmp_path: Path, repository: str) -> Content:
    return content_of(image(tmp_path / "blobs", layers_of(repository)))


@pytest.fixture
def misbehaving(real: Real) -> Iterator[Misbehaving]:
    with ExitStack() as exits:
        yield lambda *faults, **options: exits.enter_context(faulty(real.address, *faults, **options))


def publish(proxy: Faulty, repository: str, content: Content, *tags: str, **options: object) -> Placed:
    takes = options.pop("takes", Capabilities())
    with Registry(
        Access(proxy.address, patience=Patience(attempts=4)),
        intent="push",
        capabilities=takes,  # type: ignore[arg-type]
        credentials=lambda _: None,
        sleep=lambda wait_s: time.sleep(min(wait_s, 0.05)),
    ) as registry:
        place = Place(Destination("here", registry, repository), (TAG, *tags))
        (placed,) = publish_content(content, [place], **options)  # type: ignore[arg-type]
        return placed


def held(real: Real, repository: str, tag: str = TAG) -> str | None:
    return real.digest(repository, tag)


def digest_of(content: Content) -> str:
    return str(content.root.descriptor.digest)


@pytest.mark.parametrize("status", [500, 502, 503])
def test_a_manifest_that_is_refused_for_now_is_put_again(
    misbehaving: Misbehaving, real: Real, repository: str, content: Content, status: int
) -> None:
    proxy = misbehaving(f"status:{status}:3:manifest-put")
    assert publish(proxy, repository, content).state == "published"
    assert held(real, repository) == digest_of(content)


def test_whoever_asks_for_patience_before_a_manifest_gets_it(
    misbehaving: Misbehaving, real: Real, repository: str, content: Content
) -> None:
    proxy = misbehaving("too-many:0:2:manifest-put")
    assert publish(proxy, repository, content).state == "published"
    assert held(real, repository) == digest_of(content)


def test_a_run_that_ended_before_the_tags_sends_no_blob_again(
    misbehaving: Misbehaving, real: Real, repository: str, content: Content
) -> None:
    first = misbehaving("status:403:0:manifest-put")
    assert publish(first, repository, content).state == "failed"
    assert held(real, repository) is None
    second = misbehaving()
    placed = publish(second, repository, content)
    assert (placed.state, second.received_bytes) == ("published", 0)


def test_another_digest_in_the_answer_is_not_taken_for_published(
    misbehaving: Misbehaving, real: Real, repository: str, content: Content
) -> None:
    placed = publish(misbehaving("wrong-digest:0:manifest-put"), repository, content)
    assert placed.state == "failed"
    assert placed.error is not None
    assert digest_of(content) in placed.error.message
    assert held(real, repository) is None


def test_a_tag_that_somebody_moves_is_a_conflict_with_both_digests(
    misbehaving: Misbehaving, real: Real, repository: str, content: Content
) -> None:
    placed = publish(misbehaving(f"move-tag:{TAG}"), repository, content)
    assert placed.state == "failed"
    assert placed.error is not None
    assert digest_of(content) in placed.error.message
    assert str(held(real, repository)) in placed.error.message
    assert held(real, repository) != digest_of(content), "and it is not written over"


def test_an_immutable_tag_with_the_same_digest_is_a_success(
    misbehaving: Misbehaving, real: Real, repository: str, content: Content
) -> None:
    publish(misbehaving(), repository, content)
    proxy = misbehaving("status:400:0:manifest-put")
    assert publish(proxy, repository, content).state == "already"
    assert proxy.requests("manifest-put") == []


@pytest.mark.parametrize("status", [400, 413, 415])
def test_a_manifest_that_is_refused_for_good_names_type_and_registry(
    misbehaving: Misbehaving, real: Real, repository: str, content: Content, status: int
) -> None:
    proxy = misbehaving(f"status:{status}:0:manifest-put")
    placed = publish(proxy, repository, content)
    assert placed.state == "failed"
    assert placed.error is not None
    assert proxy.address in placed.error.message
    assert content.root.descriptor.media_type in placed.error.message
    assert len(proxy.requests("manifest-put")) == 1
    assert held(real, repository) is None


def test_a_registry_that_lags_behind_its_blobs_is_asked_again(
    misbehaving: Misbehaving, real: Real, repository: str, content: Content
) -> None:
    proxy = misbehaving("status:404:1:manifest-put")
    assert publish(proxy, repository, content).state == "published"
    assert held(real, repository) == digest_of(content)


def test_attestations_stay_where_they_are_refused(
    misbehaving: Misbehaving, real: Real, repository: str, content: Content
) -> None:
    proxy = misbehaving()
    placed = publish(proxy, repository, attested(content), takes=Capabilities(profile="acr", attestations=False))
    assert (placed.state, str(placed.digest)) == ("published", digest_of(content))
    assert "without attestations" in placed.notes[0]
    assert held(real, repository) == digest_of(content)


def test_attestations_go_where_they_are_taken(
    misbehaving: Misbehaving, real: Real, repository: str, content: Content
) -> None:
    whole = attested(content)
    assert publish(misbehaving(), repository, whole, "latest").state == "published"
    assert [held(real, repository, tag) for tag in (TAG, "latest")] == [digest_of(whole)] * 2


def test_a_lost_answer_to_a_manifest_is_found_to_be_done(
    misbehaving: Misbehaving, real: Real, repository: str, content: Content
) -> None:
    proxy = misbehaving("lost-response:2:manifest-put")
    assert publish(proxy, repository, content).state == "published"
    assert held(real, repository) == digest_of(content)
