"""What the answers of an upload say: ranges, addresses, digests; and that an upload's address is told to nobody."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import httpx
import pytest
from fake_registry import HOST, FakeRegistry, error

from lj_image.oci.capabilities import Capabilities
from lj_image.registry.access import Access, Patience
from lj_image.registry.client import Registry
from lj_image.registry.faults import RegistryError
from lj_image.registry.publishing.documents import OneReader
from lj_image.registry.uploading.session import Session, accepted
from lj_image.registry.uploading.upload import bring_blob
from samples.attested import blob

BLOB = blob(bytes(range(250)) * 4, "application/octet-stream")
SECRET = "_state=a%3D%3D"


@pytest.fixture
def fake() -> FakeRegistry:
    return FakeRegistry()


@pytest.fixture
def registry(fake: FakeRegistry) -> Iterator[Registry]:
    access = Access(HOST, patience=Patience(attempts=2))
    takes = Capabilities(chunk_bytes=400)
    with Registry(
        access,
        intent="push",
        capabilities=takes,
        credentials=lambda _: None,
        transport=fake.transport(),
        sleep=lambda _: None,
        environ={},
    ) as it:
        yield it


def sent(fake: FakeRegistry, method: str) -> list[httpx.Request]:
    return [request for request in fake.asked if request.method == method]


@pytest.mark.parametrize(
    ("told", "offset"),
    [
        ("0-599", 600),  # all of it
        ("bytes=0-599", 600),  # as some write it
        ("0-499", 500),  # less than was sent: the rest goes again
        (None, 600),  # nothing said: as sent
        ("0-399", 600),  # not a byte further than before, although all is well (ECR)
        ("0-0", 600),
        ("0-9999", 600),  # more than there is
        ("nonsense", 600),
    ],
)
def test_the_next_byte_is_the_one_that_the_registry_asks_for(told: str | None, offset: int) -> None:
    response = httpx.Response(202, headers={} if told is None else {"Range": told})
    assert accepted(Session("https://r.example/1", 400), response, 600, None) == Session("https://r.example/1", offset)


def test_the_newest_address_counts_and_the_least_chunk_stays() -> None:
    before = Session("https://r.example/1", 0, 300)
    after = accepted(before, httpx.Response(202), 400, "https://r.example/2")
    assert after == Session("https://r.example/2", 400, 300)


def test_an_address_keeps_its_query_byte_for_byte(registry: Registry, fake: FakeRegistry) -> None:
    assert bring_blob(registry, "team/x", OneReader(blob(b"small", "x/y"))).way == "sent"
    (end,) = sent(fake, "PUT")
    assert end.url.raw_path.decode().startswith(f"/v2/team/x/blobs/uploads/1?{SECRET}&digest=sha256%3A")


def test_chunks_have_a_range_without_unit_and_total(registry: Registry, fake: FakeRegistry) -> None:
    def take(request: httpx.Request) -> httpx.Response | None:
        return httpx.Response(202) if request.method == "PATCH" else None

    fake.before += [take, take, take, lambda request: httpx.Response(201) if request.method == "PUT" else None]
    fake.blobs["team/x"] = {}

    def have(request: httpx.Request) -> httpx.Response | None:
        told = {"Content-Length": "1000"}
        return httpx.Response(200, headers=told) if request.method == "HEAD" and sent(fake, "PUT") else None

    fake.before.append(have)
    bring_blob(registry, "team/x", OneReader(BLOB))
    assert [request.headers["Content-Range"] for request in sent(fake, "PATCH")] == ["0-399", "400-799", "800-999"]
    assert [request.headers["Content-Length"] for request in sent(fake, "PATCH")] == ["400", "400", "200"]
    (end,) = sent(fake, "PUT")
    assert end.headers["Content-Length"] == "0"


def test_an_address_of_an_upload_is_told_to_nobody(
    registry: Registry, fake: FakeRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    fake.before.append(lambda request: error(403, "DENIED", "quota") if request.method == "PATCH" else None)
    with pytest.raises(RegistryError) as caught:
        bring_blob(registry, "team/x", OneReader(BLOB))
    told = f"{caught.value} {caught.value.hint} {caught.value!r} {caplog.text}"
    assert "quota" in told
    assert "_state" not in told


def test_a_registry_that_gives_no_address_is_told_of(registry: Registry, fake: FakeRegistry) -> None:
    fake.before.append(lambda request: httpx.Response(202) if request.method == "POST" else None)
    with pytest.raises(RegistryError, match="without a place"):
        bring_blob(registry, "team/x", OneReader(BLOB))


def test_a_blob_of_another_length_is_not_there(registry: Registry, fake: FakeRegistry) -> None:
    fake.blobs["team/x"] = {str(BLOB.descriptor.digest): b"half"}
    fake.before.append(lambda request: error(403, "DENIED") if request.method == "POST" else None)
    with pytest.raises(RegistryError, match="DENIED"):
        bring_blob(registry, "team/x", OneReader(BLOB))


def test_a_closed_upload_of_which_the_registry_knows_nothing_is_a_failure(
    registry: Registry, fake: FakeRegistry
) -> None:
    fake.before.append(lambda request: httpx.Response(201) if request.method == "PUT" else None)
    with pytest.raises(RegistryError, match="stored") as caught:
        bring_blob(registry, "team/x", OneReader(blob(b"small", "x/y")))
    assert caught.value.hint
