"""The client against a registry in memory: the spec's answers, refusals, redirects, lost connections, logins."""

from __future__ import annotations

import io
import socket
import ssl
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from fake_registry import HOST, FakeRegistry, bearer, cut, digest_of, error, manifest_json, once

from lj_image.errors import ArtifactError, PublishError
from lj_image.oci.descriptor import Descriptor
from lj_image.oci.digest import Digest
from lj_image.oci.media_types import MediaType
from lj_image.registry.access import Access, Patience, is_loopback
from lj_image.registry.auth import challenges
from lj_image.registry.client import Registry
from lj_image.registry.credentials import Credentials
from lj_image.registry.faults import RegistryError
from lj_image.registry.uploading.body import pieces_of
from lj_image.registry.uploading.upload import mount, upload

BLOB = bytes(range(256)) * 20_000
DIGEST = Digest.parse(digest_of(BLOB))
DESCRIPTOR = Descriptor(MediaType.OCI_LAYER, DIGEST, len(BLOB))
MANIFEST = manifest_json(schemaVersion=2, mediaType=MediaType.OCI_MANIFEST)
ATTEMPTS = Patience().attempts
LOGIN = Credentials("robot", "s:ecret")


@pytest.fixture
def fake() -> FakeRegistry:
    return FakeRegistry(
        blobs={"team/x": {str(DIGEST): BLOB}}, manifests={"team/x": {"1": (MANIFEST, MediaType.OCI_MANIFEST)}}
    )


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def opened(fake: FakeRegistry, waits: list[float]) -> Iterator[Callable[..., Registry]]:
    every: list[Registry] = []

    def open_one(login: Credentials | None = None, **options: Any) -> Registry:
        options.setdefault("transport", fake.transport())
        patience = Patience(attempts=options.pop("attempts", ATTEMPTS))
        clock = [0.0]

        def sleep(wait_s: float) -> None:
            waits.append(wait_s)
            clock[0] += wait_s

        every.append(
            Registry(
                Access(HOST, patience=patience),
                intent="push",
                credentials=lambda _: login,
                clock=lambda: clock[0],
                sleep=sleep,
                environ={},
                **options,
            )
        )
        return every[-1]

    yield open_one
    for registry in every:
        registry.close()


class Body:
    descriptor = DESCRIPTOR

    def __init__(self, content: bytes) -> None:
        self.content = content

    def pieces(self, start: int, end: int) -> Iterator[bytes]:
        yield from pieces_of(io.BytesIO(self.content[start:]), end - start, "blob")


def send(registry: Registry, content: bytes = BLOB, **options: Any) -> None:
    upload(registry, "team/y", Body(content), **options)


# --- manifests ---


def test_a_manifest_comes_by_tag_and_by_digest(opened: Callable[..., Registry], fake: FakeRegistry) -> None:
    fake.manifests["team/x"][digest_of(MANIFEST)] = (MANIFEST, MediaType.OCI_MANIFEST)
    for wanted in ("1", digest_of(MANIFEST)):
        found = opened().manifest("team/x", wanted)
        assert (found.content, str(found.descriptor.digest)) == (MANIFEST, digest_of(MANIFEST))
        assert (found.descriptor.media_type, found.descriptor.size_bytes) == (MediaType.OCI_MANIFEST, len(MANIFEST))
    accepted = fake.asked[-1].headers["Accept"]
    assert all(kind in accepted for kind in ("image.index.v1+json", "manifest.list.v2+json", "manifest.v2+json"))


def test_other_bytes_than_those_of_the_digest_are_refused(opened: Callable[..., Registry], fake: FakeRegistry) -> None:
    fake.manifests["team/x"][digest_of(b"{}")] = (MANIFEST, MediaType.OCI_MANIFEST)
    fake.before.append(lambda _: httpx.Response(200, content=MANIFEST))
    with pytest.raises(ArtifactError, match="another manifest"):
        opened().manifest("team/x", digest_of(b"{}"))


@pytest.mark.parametrize("tells_digest", [True, False])
def test_the_digest_of_a_tag_or_surely_none(
    tells_digest: bool, opened: Callable[..., Registry], fake: FakeRegistry
) -> None:
    fake.tells_digest = tells_digest
    assert str(opened().head("team/x", "1")) == digest_of(MANIFEST)
    assert opened().head("team/x", "2") is None


@pytest.mark.parametrize("status", [404, 500, 403])
def test_what_is_not_surely_absent_is_an_error(
    status: int, opened: Callable[..., Registry], fake: FakeRegistry
) -> None:
    fake.before += [lambda _: httpx.Response(status, text="a proxy's page")] * (2 * ATTEMPTS)
    with pytest.raises(RegistryError) as raised:
        opened().head("team/x", "2")
    assert raised.value.status == status


def test_a_manifest_is_stored_as_it_is(opened: Callable[..., Registry], fake: FakeRegistry) -> None:
    assert str(opened().put_manifest("team/y", "2", MANIFEST, MediaType.OCI_MANIFEST)) == digest_of(MANIFEST)
    assert fake.manifests["team/y"]["2"] == (MANIFEST, MediaType.OCI_MANIFEST)
    fake.before.append(lambda _: httpx.Response(201, headers={"Docker-Content-Digest": digest_of(b"")}))
    with pytest.raises(RegistryError, match="instead of"):
        opened().put_manifest("team/y", "2", MANIFEST, MediaType.OCI_MANIFEST)


# --- blobs ---


def test_a_blob_is_read_and_held_against_its_digest(opened: Callable[..., Registry], fake: FakeRegistry) -> None:
    registry = opened()
    assert registry.has_blob("team/x", DIGEST)
    assert not registry.has_blob("team/y", DIGEST)
    with registry.open_blob("team/x", DESCRIPTOR) as stream:
        assert b"".join(iter(lambda: stream.read(100_000), b"")) == BLOB
    for content in (BLOB[:-1], BLOB[:-1] + b"x", BLOB + b"x"):
        fake.blobs["team/x"][str(DIGEST)] = content
        with registry.open_blob("team/x", DESCRIPTOR) as stream, pytest.raises(ArtifactError, match="other bytes"):
            list(iter(lambda stream=stream: stream.read(100_000), b""))
    with pytest.raises(RegistryError, match="has no blob") as raised:
        registry.open_blob("team/z", DESCRIPTOR)
    assert raised.value.is_absence


class Breaking(httpx.SyncByteStream):
    """Delivers a beginning, and then the connection is lost."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def __iter__(self) -> Iterator[bytes]:
        yield self.content
        raise httpx.ReadError("Connection reset by peer")


def test_a_blob_whose_connection_is_lost_goes_on_where_it_ended(
    opened: Callable[..., Registry], fake: FakeRegistry
) -> None:
    fake.before += [
        lambda _: httpx.Response(200, stream=Breaking(BLOB[:1_000])),
        lambda _: httpx.Response(206, stream=Breaking(BLOB[1_000:5_000])),
    ]
    with opened().open_blob("team/x", DESCRIPTOR) as stream:
        assert stream.read(len(BLOB) + 1) == BLOB
    assert [request.headers.get("Range") for request in fake.asked] == [None, "bytes=1000-", "bytes=5000-"]


def test_a_blob_whose_connection_is_lost_for_ever_is_given_up(
    opened: Callable[..., Registry], fake: FakeRegistry
) -> None:
    fake.before += [
        lambda request: httpx.Response(206 if "Range" in request.headers else 200, stream=Breaking(b""))
        for _ in range(3)
    ]
    fake.before += [lambda _: httpx.Response(200, content=BLOB)]  # takes nothing up
    with opened(attempts=2).open_blob("team/x", DESCRIPTOR) as stream, pytest.raises(RegistryError, match="was lost"):
        stream.read(10)


def test_the_login_is_not_sent_to_where_a_registry_keeps_its_blobs(
    opened: Callable[..., Registry], fake: FakeRegistry
) -> None:
    fake.elsewhere = "https://storage.example/bucket"
    fake.before.append(basic_challenge)
    with opened(LOGIN).open_blob("team/x", DESCRIPTOR) as stream:
        assert stream.read(10) == BLOB[:10]
    assert [(request.url.host, "Authorization" in request.headers) for request in fake.asked] == [
        (HOST, False),
        (HOST, True),
        ("storage.example", False),
    ]


@pytest.mark.parametrize("elsewhere", ["http://storage.example/bucket", "https://r.example/v2/team/x/blobs"])
def test_a_redirect_without_https_or_without_end_is_not_followed(
    elsewhere: str, opened: Callable[..., Registry], fake: FakeRegistry
) -> None:
    fake.elsewhere = elsewhere
    with pytest.raises(RegistryError, match=r"without https|from one address to the next"):
        opened().open_blob("team/x", DESCRIPTOR)


# --- uploads ---


@pytest.mark.parametrize(
    "location",
    [
        "/v2/{repository}/blobs/uploads/1?_state=a%3D%3D",
        "https://r.example/v2/{repository}/blobs/uploads/1?_state=a%3D%3D",
        "http://r.example/v2/{repository}/blobs/uploads/1?_state=a%3D%3D",  # behind a proxy that ends TLS
        "?_state=a%3D%3D",
    ],
)
def test_a_blob_is_uploaded_wherever_the_registry_says(
    location: str, opened: Callable[..., Registry], fake: FakeRegistry
) -> None:
    fake.location = location
    seen: list[int] = []
    send(opened(), watch=seen.append)
    assert fake.blobs["team/y"] == {str(DIGEST): BLOB}
    assert (seen[0], seen[-1]) == (0, len(BLOB))
    (put,) = (request for request in fake.asked if request.method == "PUT")
    assert (put.method, put.url.scheme, put.headers["Content-Length"]) == ("PUT", "https", str(len(BLOB)))
    assert "Transfer-Encoding" not in put.headers


@pytest.mark.parametrize(
    "interference",
    [
        cut("PUT"),
        once(500, method="PUT"),
        once(503, method="PUT"),
        once(429, method="PUT"),
        once(404, "BLOB_UPLOAD_UNKNOWN", method="PUT"),
        once(416, method="PUT"),
        cut("POST"),
        once(503, method="POST"),
    ],
)
def test_an_upload_that_fails_for_now_is_sent_again_whole(
    interference: Callable[[httpx.Request], httpx.Response | None],
    opened: Callable[..., Registry],
    fake: FakeRegistry,
    waits: list[float],
) -> None:
    fake.before.append(interference)
    send(opened())
    assert fake.blobs["team/y"] == {str(DIGEST): BLOB}
    assert len(waits) <= 1


def test_a_registry_that_says_when_to_come_back_is_obeyed(
    opened: Callable[..., Registry], fake: FakeRegistry, waits: list[float]
) -> None:
    fake.before += [once(429, method="PUT", **{"Retry-After": "7"}), once(503, method="POST", **{"Retry-After": "3"})]
    send(opened())
    assert waits == [3.0, 7.0]


def test_an_upload_is_given_up_after_a_few_attempts(
    opened: Callable[..., Registry], fake: FakeRegistry, waits: list[float]
) -> None:
    fake.before += [cut("PUT") for _ in range(20)]
    with pytest.raises(RegistryError, match="was lost"):
        send(opened())
    assert len(fake.paths("PUT")) == ATTEMPTS
    assert len(waits) == ATTEMPTS - 1


@pytest.mark.parametrize(("status", "code"), [(403, "DENIED"), (400, "NAME_INVALID"), (422, "WHATEVER")])
def test_a_refusal_is_not_tried_again(
    status: int, code: str, opened: Callable[..., Registry], fake: FakeRegistry
) -> None:
    fake.before.append(once(status, code, method="PUT"))
    with pytest.raises(RegistryError) as raised:
        send(opened())
    assert (raised.value.status, raised.value.code, len(fake.paths("PUT"))) == (status, code, 1)
    assert raised.value.hint


@pytest.mark.parametrize("content", [BLOB[:-1], b""])
def test_a_blob_of_another_size_is_not_stored(
    content: bytes, opened: Callable[..., Registry], fake: FakeRegistry
) -> None:
    with pytest.raises(ArtifactError, match="another size"):
        send(opened(), content)
    assert "team/y" not in fake.blobs


def test_a_place_for_an_upload_that_is_not_told_is_an_error(
    opened: Callable[..., Registry], fake: FakeRegistry
) -> None:
    fake.before.append(lambda request: httpx.Response(202) if request.method == "POST" else None)
    with pytest.raises(RegistryError, match="without a place"):
        send(opened())


def test_a_blob_of_another_repository_is_mounted_or_not(opened: Callable[..., Registry], fake: FakeRegistry) -> None:
    registry = opened()
    assert mount(registry, "team/y", DIGEST, "team/x")
    assert fake.blobs["team/y"] == {str(DIGEST): BLOB}
    assert not mount(registry, "team/z", DIGEST, "team/absent")
    assert fake.paths("DELETE") == ["/v2/team/z/blobs/uploads/1"]
    for status in (401, 403, 404, 405):
        fake.before.append(once(status, "DENIED", method="POST"))
        assert not mount(registry, "team/z", DIGEST, "team/x")


# --- logins ---


def basic_challenge(request: httpx.Request) -> httpx.Response | None:
    if "Authorization" not in request.headers:
        return error(401, "UNAUTHORIZED", **{"WWW-Authenticate": 'Basic realm="r"'})
    return None


def test_basic_is_sent_once_it_is_asked_for(opened: Callable[..., Registry], fake: FakeRegistry) -> None:
    fake.before.append(basic_challenge)
    registry = opened(LOGIN)
    for _ in range(2):
        assert registry.has_blob("team/x", DIGEST)
    # printf robot:s:ecret | base64
    assert [request.headers.get("Authorization") for request in fake.asked] == [
        None,
        *["Basic cm9ib3Q6czplY3JldA=="] * 2,
    ]


def test_a_token_is_asked_for_the_scope_and_used_while_it_lives(
    opened: Callable[..., Registry], fake: FakeRegistry
) -> None:
    answer = bearer("team/y", "pull,push")
    fake.before += [answer] * 4
    registry = opened(LOGIN)
    send(registry)
    asked = [request for request in fake.asked if request.url.host == "auth.example"]
    assert [request.url.params.multi_items() for request in asked] == [
        [("service", "r.example"), ("scope", "repository:team/y:pull,push")]
    ]
    assert asked[0].headers["Authorization"] == "Basic cm9ib3Q6czplY3JldA=="
    assert fake.asked[-1].headers["Authorization"].startswith("Bearer granted service=r.example")


def test_an_anonymous_token_is_asked_without_a_login(opened: Callable[..., Registry], fake: FakeRegistry) -> None:
    fake.before += [bearer("team/x", "pull")] * 2
    assert opened().has_blob("team/x", DIGEST)
    assert "Authorization" not in fake.asked[1].headers


def test_an_identity_token_is_exchanged(opened: Callable[..., Registry], fake: FakeRegistry) -> None:
    fake.before += [bearer("team/x", "pull")] * 2
    assert opened(Credentials("", "", "identity")).has_blob("team/x", DIGEST)
    asked = fake.asked[1]
    assert asked.method == "POST"
    assert b"grant_type=refresh_token&refresh_token=identity&client_id=lj-image" in asked.content
    assert b"identity" not in asked.url.query


def test_a_token_that_aged_during_an_upload_is_renewed(opened: Callable[..., Registry], fake: FakeRegistry) -> None:
    answer = bearer("team/y", "pull,push")
    stale = {"WWW-Authenticate": 'Bearer realm="https://auth.example/token",service="r.example"'}
    fake.before += [answer] * 2 + [once(401, "UNAUTHORIZED", method="PUT", **stale), answer]
    send(opened(LOGIN))
    assert fake.blobs["team/y"] == {str(DIGEST): BLOB}
    assert sum(request.url.host == "auth.example" for request in fake.asked) == 2


@pytest.mark.parametrize(
    "challenge",
    ["", "Negotiate", 'Basic realm="x"', 'Bearer service="no realm"'],
)
def test_a_login_that_cannot_be_given_is_told(
    challenge: str, opened: Callable[..., Registry], fake: FakeRegistry
) -> None:
    fake.before += [once(401, "UNAUTHORIZED", **{"WWW-Authenticate": challenge})] * 3
    with pytest.raises(RegistryError, match=r"r\.example (refuses the|wants a) login for blob") as raised:
        opened().has_blob("team/x", DIGEST)
    assert raised.value.hint == "run: docker login r.example"


def test_a_login_that_is_refused_is_told_without_its_secret(
    opened: Callable[..., Registry], fake: FakeRegistry
) -> None:
    fake.before += [once(401, "UNAUTHORIZED", **{"WWW-Authenticate": 'Basic realm="x"'})] * 4
    with pytest.raises(RegistryError, match="refuses the login") as raised:
        opened(LOGIN).manifest("team/x", "1")
    assert "ecret" not in "".join(raised.value.lines())
    assert "ecret" not in repr(LOGIN)


@pytest.mark.parametrize("answered", [b"{}", b"secret words", b"[]"])
def test_a_token_service_that_gives_none_is_told(
    answered: bytes, opened: Callable[..., Registry], fake: FakeRegistry
) -> None:
    fake.before += [
        bearer("team/x", "pull"),
        lambda request: httpx.Response(200, content=answered) if request.url.host == "auth.example" else None,
    ]
    fake.before[0] = once(401, "UNAUTHORIZED", **{"WWW-Authenticate": 'Bearer realm="https://auth.example/token"'})
    with pytest.raises(RegistryError, match="gives no token") as raised:
        opened(LOGIN).has_blob("team/x", DIGEST)
    assert "secret words" not in str(raised.value)


def test_a_login_goes_to_no_token_service_without_https(opened: Callable[..., Registry], fake: FakeRegistry) -> None:
    fake.before.append(bearer("team/x", "pull", realm="http://auth.example/token"))
    with pytest.raises(RegistryError, match=r"leads to auth\.example without https"):
        opened(LOGIN).has_blob("team/x", DIGEST)
    assert {request.url.host for request in fake.asked} == {HOST}


def test_challenges_are_read_as_registries_write_them() -> None:
    found = challenges('Basic realm="a, b", Bearer realm="https://x/t",scope="repository:a:pull,push"')
    assert [(item.scheme, dict(item.parameters)) for item in found] == [
        ("bearer", {"realm": "https://x/t", "scope": "repository:a:pull,push"}),
        ("basic", {"realm": "a, b"}),
    ]
    assert challenges("") == challenges("Digest realm=x") == ()


# --- what happens on the way ---


def failing(cause: Exception, error: type[httpx.TransportError] = httpx.ConnectError) -> httpx.MockTransport:
    def answer(request: httpx.Request) -> httpx.Response:
        raise error(str(cause)) from cause

    return httpx.MockTransport(answer)


@pytest.mark.parametrize(
    ("transport", "words", "hint"),
    [
        (failing(socket.gaierror(-2, "Name or service not known")), "cannot be found by name", "VPC"),
        (failing(ConnectionRefusedError(111, "refused")), "refuses the connection", "port"),
        (failing(ssl.SSLCertVerificationError("self-signed")), "certificate that is not trusted", "ca_bundle"),
        (failing(ssl.SSLError("wrong version number")), "does not speak https", "plain_http: true"),
        (failing(TimeoutError(), httpx.ConnectTimeout), "does not answer from here", "VPC"),
        (failing(OSError("reset"), httpx.ReadError), "was lost: reset", "try again"),
    ],
)
def test_a_registry_that_is_not_reached_is_explained(
    transport: httpx.MockTransport, words: str, hint: str, opened: Callable[..., Registry]
) -> None:
    with pytest.raises(PublishError, match=words) as raised:
        opened(transport=transport, attempts=2).has_blob("team/x", DIGEST)
    assert hint in (raised.value.hint or "")
    assert HOST in raised.value.message


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("localhost:5000", True),
        ("127.0.0.1:5000", True),
        ("127.1.2.3", True),
        ("[::1]:5000", True),
        ("[::1]", True),
        ("localhost.example", False),
        ("r.example:5000", False),
        ("10.0.0.1", False),
    ],
)
def test_plain_http_is_for_this_machine_alone(host: str, expected: bool) -> None:
    assert is_loopback(host) == expected
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.scheme)
        return httpx.Response(200)

    with Registry(host, credentials=lambda _: None, transport=httpx.MockTransport(answer), environ={}) as registry:
        registry.has_blob("x", DIGEST)
    assert asked == ["http" if expected else "https"]


def test_docker_hub_is_asked_where_it_really_is() -> None:
    asked: list[httpx.URL] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url)
        return httpx.Response(200)

    with Registry("docker.io", credentials=lambda _: None, transport=httpx.MockTransport(answer), environ={}) as hub:
        hub.has_blob("library/six", DIGEST)
    assert str(asked[0]) == f"https://registry-1.docker.io/v2/library/six/blobs/{DIGEST}"
