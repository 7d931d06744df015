"""Logins of one connection: which tokens are asked for, when they are renewed, and who never gets one."""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import httpx
import pytest

from lj_image.registry.access import Access, Patience
from lj_image.registry.challenge import asked_scopes, challenges, repository_of
from lj_image.registry.connection import Connection
from lj_image.registry.credentials import Credentials
from lj_image.registry.faults import RegistryError

HOST, REALM = "r.example", "https://auth.example/token"
PUSH = ("repository:team/x:pull,push",)
LOGIN = Credentials("robot", "s:ecret")


@dataclass
class Service:
    """A registry that wants a token, and the service that gives it; each token is good until it is `revoked`."""

    expires_in: object = 300
    realm: str = REALM
    scope: str = "repository:team/x:pull,push"
    answers: list[httpx.Response] = field(default_factory=list)
    """What the service says first."""
    given: list[httpx.Request] = field(default_factory=list)
    asked: list[httpx.Request] = field(default_factory=list)
    good: set[str] = field(default_factory=set)
    delay_s: float = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        request.read()
        with self.lock:
            if str(request.url).startswith(self.realm):
                return self._token(request)
            self.asked.append(request)
            if request.headers.get("Authorization", "") in self.good:
                return httpx.Response(200)
            header = f'Bearer realm="{self.realm}",service="{HOST}",scope="{self.scope}"'
            return httpx.Response(401, headers={"WWW-Authenticate": header})

    def _token(self, request: httpx.Request) -> httpx.Response:
        time.sleep(self.delay_s)
        self.given.append(request)
        if self.answers:
            return self.answers.pop(0)
        token = f"t{len(self.given)}"
        self.good.add(f"Bearer {token}")
        return httpx.Response(200, json={"token": token, "expires_in": self.expires_in})


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


Opened = Callable[..., Connection]


@pytest.fixture
def opened() -> Iterator[Opened]:
    every: list[Connection] = []

    def make(
        answer: Callable[[httpx.Request], httpx.Response], login: Credentials | None = LOGIN, **options: Any
    ) -> Connection:
        options.setdefault("credentials", lambda _: login)
        access = options.pop("access", Access(HOST, patience=Patience(attempts=2)))
        sleep: Callable[[float], None] = lambda _: None  # noqa: E731
        every.append(Connection(access, transport=httpx.MockTransport(answer), environ={}, sleep=sleep, **options))
        return every[-1]

    yield make
    for connection in every:
        connection.close()


def ask(connection: Connection, scopes: tuple[str, ...] = PUSH) -> httpx.Response:
    return connection.send("GET", "team/x/tags/list", scopes, "tags of team/x")


@pytest.mark.parametrize(
    ("expires_in", "lives_s"),
    [(300, 270), (3600, 3240), (100, 90), (60, 50), (1, 50), (0, 50), (None, 50), (-5, 50), ("300", 270)],
)
def test_a_token_is_renewed_some_time_before_its_end(opened: Opened, expires_in: object, lives_s: float) -> None:
    service, clock = Service(expires_in=expires_in), Clock()
    connection = opened(service, clock=clock)
    ask(connection)
    clock.now += lives_s - 0.5
    assert ask(connection).status_code == 200
    assert len(service.given) == 1
    clock.now += 1
    asked = len(service.asked)
    assert ask(connection).status_code == 200
    assert (len(service.given), len(service.asked)) == (2, asked + 1)  # before the registry has to say so


def test_many_threads_get_one_token_together(opened: Opened) -> None:
    service = Service(delay_s=0.1)
    connection = opened(service)
    for _ in range(2):  # at first, and when it has been taken away
        threads = [threading.Thread(target=ask, args=(connection,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        service.good.clear()
    assert len(service.given) == 2


def test_many_threads_are_refused_together(opened: Opened) -> None:
    service = Service(delay_s=0.05, answers=[httpx.Response(401)] * 20)
    connection, failures = opened(service), []

    def work() -> None:
        with pytest.raises(RegistryError, match=r"r\.example refuses the login of robot") as raised:
            ask(connection)
        failures.append(raised.value)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(failures) == len({id(failure) for failure in failures}) == 8
    assert len(service.given) == 1


def test_a_second_401_is_a_refusal(opened: Opened) -> None:
    granted = [httpx.Response(200, json={"token": f"nobody's {number}"}) for number in range(3)]
    service = Service(answers=granted)
    connection = opened(service)
    assert ask(connection).status_code == 401
    assert (len(service.given), len(service.asked)) == (1, 2)
    assert ask(connection).status_code == 401
    assert (len(service.given), len(service.asked)) == (2, 4)


def test_a_401_without_a_challenge_renews_what_was_granted(opened: Opened) -> None:
    service, refusals = Service(), [httpx.Response(401)]

    def answer(request: httpx.Request) -> httpx.Response:
        return refusals.pop() if service.given and refusals and request.url.path == "/later" else service(request)

    connection = opened(answer)
    ask(connection)
    assert connection.send("GET", "/later", PUSH, "something").status_code == 200
    assert len(service.given) == 2


def test_what_a_challenge_wants_beyond_our_scopes_is_asked_for_behind_them(opened: Opened) -> None:
    service = Service(scope="repository:team/x:delete repository:team/y:pull aws")
    ask(opened(service))
    assert service.given[0].url.params.get_list("scope") == [
        "repository:team/x:pull,push,delete",
        "repository:team/y:pull",
        "aws",
    ]


def test_only_the_registry_itself_is_answered_with_a_login(opened: Opened) -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        if request.url.host == HOST:
            return httpx.Response(307, headers={"Location": "https://storage.example/blob"})
        return httpx.Response(401, headers={"WWW-Authenticate": 'Basic realm="give me yours"'})

    assert ask(opened(answer)).status_code == 401
    assert [request.url.host for request in asked] == [HOST, "storage.example"]
    assert not any("Authorization" in request.headers for request in asked)


@pytest.mark.parametrize("other", ["https://r.example:8443/x", "http://r.example/x", "https://x.r.example/x"])
def test_another_port_or_name_is_another_registry(opened: Opened, other: str) -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        if "Authorization" not in request.headers and request.url.path.startswith("/v2/"):
            return httpx.Response(401, headers={"WWW-Authenticate": "Basic"})
        if request.url.path.startswith("/v2/"):
            return httpx.Response(308, headers={"Location": other})
        return httpx.Response(200)

    ask(opened(answer))
    led = asked[-1]
    is_own = str(led.url) == "https://r.example/x"  # a registry behind a proxy that ends TLS
    assert ("Authorization" in led.headers) == is_own == (other == "http://r.example/x")


# --- the forms of a login ---


def form_of(request: httpx.Request) -> dict[str, list[str]]:
    return parse_qs(request.content.decode())


@pytest.mark.parametrize("status", [404, 405])
def test_a_service_without_one_form_is_asked_in_the_other(opened: Opened, status: int) -> None:
    service = Service(answers=[httpx.Response(status)])
    ask(opened(service))
    assert [request.method for request in service.given] == ["GET", "POST"]
    assert form_of(service.given[1]) == {
        "grant_type": ["password"],
        "username": ["robot"],
        "password": ["s:ecret"],
        "client_id": ["lj-image"],
        "service": [HOST],
        "scope": ["repository:team/x:pull,push"],
    }
    service = Service(answers=[httpx.Response(status)])
    ask(opened(service, Credentials("robot", "s:ecret", "identity")))
    assert [request.method for request in service.given] == ["POST", "GET"]
    assert service.given[1].headers["Authorization"] == f"Basic {base64.b64encode(b'robot:s:ecret').decode()}"


@pytest.mark.parametrize("status", [400, 401, 403])
def test_a_refused_identity_token_gives_way_to_the_password(opened: Opened, status: int) -> None:
    service = Service(answers=[httpx.Response(status, json={"error": "invalid_grant"})])
    connection = opened(service, Credentials("robot", "s:ecret", "identity"))
    assert ask(connection).status_code == 200
    service.good.clear()
    ask(connection)
    assert [request.method for request in service.given] == ["POST", "GET", "GET"]  # it is not tried a second time


def test_a_helper_is_asked_again_when_its_secret_ran_out(opened: Opened) -> None:
    held = [Credentials("AWS", "old"), Credentials("AWS", "new")]
    service = Service(answers=[httpx.Response(401)])
    assert ask(opened(service, credentials=lambda _: held.pop(0))).status_code == 200
    assert held == []
    expected = [f"Basic {base64.b64encode(f'AWS:{word}'.encode()).decode()}" for word in ("old", "new")]
    assert [request.headers["Authorization"] for request in service.given] == expected


def test_a_password_by_basic_is_asked_again_too_and_refused_only_then(opened: Opened) -> None:
    held = [Credentials("AWS", "old"), Credentials("AWS", "new"), Credentials("AWS", "new")]
    good = [f"Basic {base64.b64encode(b'AWS:old').decode()}"]

    def answer(request: httpx.Request) -> httpx.Response:
        if request.headers.get("Authorization") in good:
            return httpx.Response(200)
        return httpx.Response(401, headers={"WWW-Authenticate": 'Basic realm="ecr"'})

    connection = opened(answer, credentials=lambda _: held.pop(0))
    assert ask(connection).status_code == 200
    good[:] = [f"Basic {base64.b64encode(b'AWS:new').decode()}"]
    assert ask(connection).status_code == 200
    good.clear()
    with pytest.raises(RegistryError, match=r"r\.example refuses the login"):
        ask(connection)


def test_a_registry_token_is_shown_as_it_is(opened: Opened) -> None:
    service = Service(good={"Bearer mine"})
    assert ask(opened(service, Credentials("", "", "", "mine"))).status_code == 200
    assert service.given == []


def test_the_login_is_that_of_the_repository(opened: Opened) -> None:
    places: list[str] = []
    ask(opened(Service(), credentials=lambda place: places.append(place)))
    assert places == ["r.example/team/x"]


@pytest.mark.parametrize("token", ["two\nlines", "ünicode", ""])
def test_what_does_not_fit_into_a_header_is_no_token(opened: Opened, token: str) -> None:
    service = Service(answers=[httpx.Response(200, json={"token": token})])
    with pytest.raises(RegistryError, match="gives no token") as raised:
        ask(opened(service))
    assert not token or token not in raised.value.message


def test_a_refusal_that_repeats_the_password_is_told_without_it(opened: Opened) -> None:
    words = {"errors": [{"code": "UNAUTHORIZED", "message": "no user robot with password s:ecret"}]}
    service = Service(answers=[httpx.Response(401, json=words)])
    with pytest.raises(RegistryError) as raised:
        ask(opened(service))
    assert "s:ecret" not in f"{raised.value.lines()}{raised.value!r}"
    assert raised.value.status == 401


def test_a_login_is_not_led_on_to_another_host(opened: Opened) -> None:
    away = httpx.Response(307, headers={"Location": "https://other.example/token"})
    service = Service(answers=[away])
    with pytest.raises(RegistryError, match="leads a login on"):
        ask(opened(service, Credentials("", "", "identity")))
    seen: list[httpx.Request] = []
    service = Service(answers=[httpx.Response(307, headers={"Location": "https://other.example/token"})])

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.host == "other.example":
            seen.append(request)
            return httpx.Response(200, json={"token": "anonymous"})
        return service(request)

    ask(opened(answer))
    assert "Authorization" not in seen[0].headers


# --- challenges ---


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ('Basic realm="a, b"', [("basic", {"realm": "a, b"})]),
        (
            'Basic realm="x", Bearer realm="https://a/t",scope="repository:a:pull repository:b:pull,push"',
            [
                ("bearer", {"realm": "https://a/t", "scope": "repository:a:pull repository:b:pull,push"}),
                ("basic", {"realm": "x"}),
            ],
        ),
        ("Basic", [("basic", {})]),
        ("bearer realm=https://a/t , service=s", [("bearer", {"realm": "https://a/t", "service": "s"})]),
        ('Negotiate abc==, Basic realm="x"', [("basic", {"realm": "x"})]),
        (r'Basic realm="a \"b\", Bearer realm=c"', [("basic", {"realm": 'a "b", Bearer realm=c'})]),
        ('BEARER Realm="r" , Service = "s"', [("bearer", {"realm": "r", "service": "s"})]),
        ("Digest realm=x", []),
        ("", []),
        (',, ="', []),
    ],
)
def test_challenges_are_read_by_their_grammar(header: str, expected: list[tuple[str, dict[str, str]]]) -> None:
    assert [(item.scheme, dict(item.parameters)) for item in challenges(header)] == expected


def test_our_scopes_come_first() -> None:
    ours = ("repository:a:pull,push", "repository:b:pull")
    assert asked_scopes(ours, "repository:b:pull repository:a:pull,push") == ours
    assert asked_scopes(ours, "") == ours
    assert asked_scopes((), "registry:catalog:*") == ("registry:catalog:*",)
    assert asked_scopes(("repository:h:5/a:pull",), "repository:h:5/a:push") == ("repository:h:5/a:pull,push",)
    assert repository_of(ours) == "a"
    assert repository_of(("aws",)) == repository_of(()) == ""
