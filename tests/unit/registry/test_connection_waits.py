"""How long a registry is waited for, what is tried again, and where it may lead."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable

import httpx
import pytest

from lj_image.registry.access import Access, Patience, is_loopback, reach_of
from lj_image.registry.connection import Connection, CutOff
from lj_image.registry.faults import RegistryError, refused, unreachable
from lj_image.registry.leading import led_to
from lj_image.registry.patience import Gate, backoff_s, most_attempts, retry_after_s
from lj_image.registry.remedies import to_create

HOST, SCOPES = "r.example", ("repository:team/x:pull,push",)
PATIENT = Patience(attempts=4)


class Slept:
    """A clock that goes on by what is slept."""

    def __init__(self) -> None:
        self.now, self.waits = 100.0, list[float]()

    def clock(self) -> float:
        return self.now

    def sleep(self, wait_s: float) -> None:
        self.waits.append(wait_s)
        self.now += wait_s


@pytest.fixture
def slept() -> Slept:
    return Slept()


def connected(
    answer: Callable[[httpx.Request], httpx.Response], slept: Slept, patience: Patience = PATIENT
) -> Connection:
    return Connection(
        Access(HOST, patience=patience),
        credentials=lambda _: None,
        transport=httpx.MockTransport(answer),
        environ={},
        clock=slept.clock,
        sleep=slept.sleep,
    )


def answered(*answers: int | httpx.Response | Exception) -> tuple[list[httpx.Request], Callable[..., httpx.Response]]:
    """Return what is asked, and what gives these answers in turn, the last of them for ever."""
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        request.read()
        asked.append(request)
        found = answers[min(len(asked), len(answers)) - 1]
        if isinstance(found, Exception):
            raise found
        return httpx.Response(found) if isinstance(found, int) else found

    return asked, answer


@pytest.mark.parametrize("status", [408, 429, 499, 500, 502, 503, 504, 520, 521, 522, 523, 524])
def test_what_may_pass_is_tried_again(status: int, slept: Slept) -> None:
    asked, answer = answered(status, status, 200)
    with connected(answer, slept) as connection:
        assert connection.send("GET", "x", SCOPES, "x").status_code == 200
    assert len(asked) == 3
    asked, answer = answered(status)
    with connected(answer, slept) as connection:
        assert connection.send("GET", "x", SCOPES, "x").status_code == status
    assert len(asked) == PATIENT.attempts


@pytest.mark.parametrize("status", [400, 403, 404, 405, 409, 412, 413, 415, 416, 501, 505, 507, 519, 525])
def test_what_stays_is_not_tried_again(status: int, slept: Slept) -> None:
    asked, answer = answered(status)
    with connected(answer, slept) as connection:
        assert connection.send("GET", "x", SCOPES, "x").status_code == status
    assert (len(asked), slept.waits) == (1, [])


def failure(cause: Exception, kind: type[httpx.TransportError] = httpx.ConnectError) -> httpx.TransportError:
    error = kind(str(cause))
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "attempts"),
    [
        (failure(ssl.SSLCertVerificationError(1, "unable to get local issuer certificate")), 1),
        (failure(ssl.SSLError(1, "wrong version number")), 1),
        (failure(ssl.SSLEOFError(8, "EOF occurred")), 6),
        (failure(socket.gaierror(-2, "Name or service not known")), 3),
        (failure(ConnectionRefusedError(111, "refused")), 3),
        (httpx.ConnectTimeout("timed out"), 3),
        (httpx.ProxyError("403 Forbidden"), 3),
        (httpx.UnsupportedProtocol("ftp"), 1),
        (httpx.LocalProtocolError("Illegal header value"), 1),
        (httpx.ReadError("reset"), 6),
        (httpx.RemoteProtocolError("EOF"), 6),
        (httpx.ReadTimeout("timed out"), 6),
        (httpx.WriteError("Broken pipe"), 6),
    ],
)
def test_what_most_likely_ends_the_same_is_tried_a_few_times(
    error: httpx.TransportError, attempts: int, slept: Slept
) -> None:
    assert most_attempts(error, Patience()) == attempts
    asked, answer = answered(error)
    with connected(answer, slept, Patience()) as connection, pytest.raises(RegistryError):
        connection.send("GET", "x", SCOPES, "x")
    assert len(asked) == attempts


def test_waits_are_at_random_below_a_bound_that_doubles() -> None:
    for attempt, most_s in ((0, 1), (1, 2), (3, 8), (5, 30), (1000, 30)):
        waits = [backoff_s(attempt) for _ in range(200)]
        assert 0 <= min(waits) < most_s * 0.2
        assert most_s * 0.8 < max(waits) <= most_s


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "0"}, 0.0),
        ({}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-3"}, None),
        ({"Retry-After": "1.5"}, None),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:09 GMT", "Date": "Wed, 21 Oct 2015 07:28:00 GMT"}, 9.0),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT", "Date": "Wed, 21 Oct 2015 07:28:09 GMT"}, 0.0),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),  # long ago by our clock
        ({"Retry-After": "Wed, 21 Oct 99999999999999999999 07:28:00 GMT"}, None),
    ],
)
def test_both_forms_of_retry_after_are_read(headers: dict[str, str], expected: float | None) -> None:
    assert retry_after_s(httpx.Response(429, headers=headers)) == expected


def test_a_latin_digit_that_is_none_is_no_number() -> None:
    assert retry_after_s(httpx.Response(429, headers=[(b"Retry-After", "²".encode("latin-1"))])) is None


def test_a_wait_is_no_longer_than_we_are_patient(slept: Slept) -> None:
    _, answer = answered(httpx.Response(503, headers={"Retry-After": "86400"}), 200)
    with connected(answer, slept) as connection:
        connection.send("GET", "x", SCOPES, "x")
    assert slept.waits == [300.0]


@pytest.mark.parametrize(
    ("status", "headers", "is_held"),
    [(429, {"Retry-After": "5"}, True), (503, {"Retry-After": "5"}, True), (429, {}, True), (503, {}, False)],
)
def test_what_a_registry_asks_of_one_request_holds_all(
    status: int, headers: dict[str, str], is_held: bool, slept: Slept
) -> None:
    gate = Gate(HOST, PATIENT, slept.clock, slept.waits.append)
    assert gate.wait_before(2, httpx.Response(status, headers=headers))
    slept.waits.clear()
    gate.wait_until_open()
    assert bool(slept.waits) == is_held


def test_a_wait_that_is_prolonged_meanwhile_is_waited_to_its_end(slept: Slept) -> None:
    told = [httpx.Response(429, headers={"Retry-After": "20"})]

    def sleep(wait_s: float) -> None:
        slept.sleep(wait_s)
        if told:
            gate.wait_before(0, told.pop())  # as another thread would

    gate = Gate(HOST, PATIENT, slept.clock, sleep)
    gate.wait_before(0, httpx.Response(429, headers={"Retry-After": "5"}))
    assert slept.now >= 125


def test_a_deadline_is_not_waited_for(slept: Slept) -> None:
    patience = Patience(deadline_s=10)
    asked, answer = answered(httpx.Response(503, headers={"Retry-After": "11"}))
    with (
        connected(answer, slept, patience) as connection,
        pytest.raises(RegistryError, match="within 10 s, and wants another 11 s"),
    ):
        connection.send("GET", "x", SCOPES, "x")
    assert (len(asked), slept.waits) == (1, [])
    slept.now += 11
    with connected(answer, slept, patience) as connection:
        slept.now += 11
        with pytest.raises(RegistryError, match="not done within 10 s"):
            connection.send("GET", "x", SCOPES, "x")
    assert len(asked) == 1


def test_a_body_is_not_read_on_when_all_has_to_end() -> None:
    read: list[bytes] = []

    class Reading(httpx.BaseTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            assert isinstance(request.stream, httpx.SyncByteStream)
            for piece in request.stream:
                read.append(piece)
                connection.cut_off()
            return httpx.Response(201)

    with Connection(Access(HOST), credentials=lambda _: None, transport=Reading(), environ={}) as connection:
        with pytest.raises(CutOff):
            connection.send_body("PUT", f"https://{HOST}/v2/x", SCOPES, "x", lambda: [b"x"] * 10, headers={})
        with pytest.raises(CutOff):
            connection.send("GET", "x", SCOPES, "x")
    assert read == [b"x"]


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PATCH", "PUT", "DELETE"])
def test_redirects_keep_method_and_body(method: str, status: int, slept: Slept) -> None:
    asked, answer = answered(httpx.Response(status, headers={"Location": "/elsewhere?a=%2F"}), 200)
    content = b"body" if method in ("POST", "PATCH", "PUT") else None
    with connected(answer, slept) as connection:
        assert connection.send(method, "x", SCOPES, "x", content=content).status_code == 200
    assert [(request.method, request.content) for request in asked] == [(method, content or b"")] * 2
    assert str(asked[1].url) == f"https://{HOST}/elsewhere?a=%2F"


def test_a_large_body_is_sent_again_to_where_it_is_led(slept: Slept) -> None:
    asked, answer = answered(httpx.Response(307, headers={"Location": "https://s.example/y"}), 201)
    with connected(answer, slept) as connection:
        connection.send_body("PUT", f"https://{HOST}/v2/x", SCOPES, "x", lambda: [b"a", b"b"], headers={})
    assert [(str(request.url), request.content) for request in asked] == [
        (f"https://{HOST}/v2/x", b"ab"),
        ("https://s.example/y", b"ab"),
    ]


def test_see_other_is_a_question(slept: Slept) -> None:
    asked, answer = answered(httpx.Response(303, headers={"Location": "/elsewhere"}), 200)
    with connected(answer, slept) as connection:
        connection.send("POST", "x", SCOPES, "x", content=b"body")
    assert (asked[1].method, asked[1].content, asked[1].headers.get("Content-Length")) == ("GET", b"", None)


def test_cookies_are_not_kept(slept: Slept) -> None:
    asked, answer = answered(httpx.Response(200, headers={"Set-Cookie": "sid=1; Path=/"}))
    with connected(answer, slept) as connection:
        for _ in range(2):
            connection.send("GET", "x", SCOPES, "x")
    assert "Cookie" not in asked[1].headers


# --- where a registry may lead ---


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", "loopback"),
        ("LocalHost.:5000", "loopback"),
        ("a.localhost", "loopback"),
        ("127.0.0.1:5000", "loopback"),
        ("[::1]:5000", "loopback"),
        ("[::ffff:127.0.0.1]", "loopback"),
        ("127.1", "loopback"),
        ("2130706433", "loopback"),
        ("0x7f.1", "loopback"),
        ("0.0.0.0", "loopback"),
        ("10.1.2.3", "private"),
        ("192.168.0.1:5000", "private"),
        ("169.254.169.254", "private"),
        ("100.100.2.136", "private"),  # where clouds have their services
        ("[fe80::1%25eth0]", "private"),
        ("[fd00::1]:5000", "private"),
        ("8.8.8.8", "public"),
        ("127.0.0.1.example", "public"),
        ("localhost.example", "public"),
        ("registry-vpc.cn-beijing.aliyuncs.com", "public"),
    ],
)
def test_from_where_a_host_is_reached(host: str, expected: str) -> None:
    assert reach_of(host) == expected
    assert is_loopback(host) == (expected == "loopback")


@pytest.mark.parametrize(
    ("host", "named", "expected"),
    [
        (HOST, "/v2/x?_state=a%3D%3D", f"https://{HOST}/v2/x?_state=a%3D%3D"),
        (HOST, "https://s.example:8443/y?Sig=a%2Fb+c", "https://s.example:8443/y?Sig=a%2Fb+c"),
        (HOST, f"http://{HOST}/y", f"https://{HOST}/y"),
        (HOST, f"http://{HOST}:80/y", f"https://{HOST}/y"),
        (f"{HOST}:5000", f"http://{HOST}/y", f"https://{HOST}:5000/y"),
        (HOST, "https://8.8.8.8/y", "https://8.8.8.8/y"),
        ("10.0.0.1", "https://10.0.0.2/y", "https://10.0.0.2/y"),
        ("localhost:5000", "http://127.0.0.1:6000/y", "http://127.0.0.1:6000/y"),
        ("localhost:5000", "https://s.example/y", "https://s.example/y"),
    ],
)
def test_where_a_registry_may_lead(host: str, named: str, expected: str) -> None:
    access = Access(host)
    assert led_to(access, access.base, named) == expected


@pytest.mark.parametrize(
    ("host", "named", "words"),
    [
        (HOST, "http://s.example/y", "without https"),
        (HOST, "https://127.0.0.1/y", "private network"),
        (HOST, "https://localhost:5000/y", "private network"),
        (HOST, "https://[::1]/y", "private network"),
        (HOST, "https://169.254.169.254/latest", "private network"),
        (HOST, "https://2130706433/y", "private network"),
        ("10.0.0.1", "https://127.0.0.1/y", "private network"),
        (HOST, "ftp://s.example/y", "not http"),
        (HOST, "file:///etc/passwd", "not http"),
        (HOST, "https://s.example:port/secret", "no address"),
        (HOST, "https://[::1/secret", "no address"),
    ],
)
def test_where_a_registry_may_not_lead(host: str, named: str, words: str) -> None:
    access = Access(host)
    with pytest.raises(RegistryError, match=words) as raised:
        led_to(access, access.base, named)
    assert "secret" not in f"{raised.value.lines()}"


@pytest.mark.parametrize("allowed", ["10.1.2.3", "10.1.2.3:9000"])
def test_who_is_allowed_by_name_may_be_led_to(allowed: str) -> None:
    access = Access(HOST, may_lead_to=(allowed,))
    assert led_to(access, access.base, "https://10.1.2.3:9000/y") == "https://10.1.2.3:9000/y"
    with pytest.raises(RegistryError, match="private network") as raised:
        led_to(access, access.base, "https://10.1.2.4/y")
    assert 'registries: {"r.example": {may_lead_to: ["10.1.2.4"]}}' in (raised.value.hint or "")


# --- what is told ---


def refusal(status: int, code: str, words: str, method: str = "POST", path: str = "blobs/uploads/") -> RegistryError:
    request = httpx.Request(method, f"https://{HOST}/v2/team/x/{path}")
    return refused(
        httpx.Response(status, json={"errors": [{"code": code, "message": words}]}, request=request), "upload to team/x"
    )


@pytest.mark.parametrize(
    ("status", "code", "words", "message", "hint"),
    [
        (403, "DENIED", "adding 1 GiB exceeds the quota", "has no room for", "quota"),
        (412, "DENIED", "quota reached", "has no room for", "quota"),
        (507, "UNKNOWN", "", "has no room for", "delete what is not needed"),
        (403, "DENIED", "no", "does not let this account", "docker login"),
        (404, "NAME_UNKNOWN", "unknown", "has no repository team/x to push to", f"https://{HOST}: team, with team/x"),
        (404, "NOT_FOUND", "project team not found", "has no repository team/x to push to", "create the project"),
        (413, "SIZE_INVALID", "", "takes nothing so large", "limit"),
        (429, "TOOMANYREQUESTS", "", "wants fewer requests", "wait"),
        (500, "UNKNOWN", "disk", "answers 500", "later"),
        (400, "NAME_INVALID", "bad", "answers 400", "words of the registry"),
    ],
)
def test_a_refusal_says_what_to_do(status: int, code: str, words: str, message: str, hint: str) -> None:
    error = refusal(status, code, words)
    assert message in error.message
    assert hint in (error.hint or "")
    assert (error.status, error.code) == (status, code)


def test_a_lost_upload_is_no_lost_repository() -> None:
    assert "repository" not in refusal(404, "BLOB_UPLOAD_UNKNOWN", "", "PATCH", "blobs/uploads/1").message
    assert "has no upload" in refusal(404, "NAME_UNKNOWN", "", "GET", "manifests/1").message


@pytest.mark.parametrize("path", ["/v2/team/x/blobs/uploads/8f-capability", "/v2/team/x/blobs/upload/8f-capability"])
def test_the_address_of_an_upload_is_not_shown(path: str) -> None:
    request = httpx.Request("PATCH", f"https://{HOST}{path}?_state=secret")
    error = refused(httpx.Response(418, text="a page", request=request), "upload")
    assert "capability" not in f"{error.lines()}"
    assert "secret" not in f"{error.lines()}"


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        (
            "123456789012.dkr.ecr.eu-west-1.amazonaws.com",
            "aws ecr create-repository --region eu-west-1 --repository-name team/x",
        ),
        ("public.ecr.aws", "--repository-name x"),
        ("europe-docker.pkg.dev", "gcloud artifacts repositories create x"),
        ("registry-vpc.cn-beijing.aliyuncs.com", "the namespace team"),
        ("docker.io", "https://hub.docker.com"),
        ("quay.io", "the organization team"),
        ("localhost:5000", "at https://localhost:5000: team, with team/x"),
    ],
)
def test_where_a_repository_is_made_depends_on_the_registry(host: str, expected: str) -> None:
    assert expected in to_create(host, "team/x")


def test_a_client_certificate_that_is_missing_is_told() -> None:
    alert = ssl.SSLError(1, "[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] tlsv13 alert certificate required")
    error = unreachable(failure(alert, httpx.ReadError), HOST)
    assert "client certificate" in error.message
    assert "client_certificate" in (error.hint or "")
