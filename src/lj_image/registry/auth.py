"""Logging in: Basic, or a token for one scope from the service that the registry names.

Protocol: https://distribution.github.io/distribution/spec/auth/token/ and …/auth/oauth/
"""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from lj_image.registry.credentials import Credentials
from lj_image.registry.faults import RegistryError, refused

CLIENT_ID: Final = "lj-image"
_SHORTEST_LIFE_S: Final = 60
"""Of a token whose answer says nothing: spec/auth/token, "expires_in"."""
_MARGIN_S: Final = 10
_CHALLENGE: Final = re.compile(
    r'(?<![^\s,])(Bearer|Basic)\b\s*((?:[A-Za-z_]+="(?:[^"\\]|\\.)*"\s*,?\s*)*)', re.IGNORECASE
)
_PARAMETER: Final = re.compile(r'([A-Za-z_]+)="((?:[^"\\]|\\.)*)"')

Send = Callable[[httpx.Request], httpx.Response]


@dataclass(frozen=True, slots=True)
class Challenge:
    """What a 401 asks for."""

    scheme: str
    """`bearer` or `basic`."""
    parameters: Mapping[str, str]


def challenges(header: str) -> tuple[Challenge, ...]:
    """Read WWW-Authenticate (RFC 9110 §11.6.1), as far as registries use it; Bearer first."""
    found = (
        Challenge(scheme.lower(), {key.lower(): value for key, value in _PARAMETER.findall(rest)})
        for scheme, rest in _CHALLENGE.findall(header)
    )
    return tuple(sorted(found, key=lambda item: item.scheme != "bearer"))


@dataclass(frozen=True, slots=True)
class _Token:
    header: str
    ends_at: float


class Authorizer:
    """Keeps what one registry has granted, by scope; asks anew when it is old or refused."""

    def __init__(
        self,
        credentials: Callable[[], Credentials | None],
        send: Send,
        *,
        plain_http: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask_credentials = credentials
        self._send = send
        self._plain_http = plain_http
        self._clock = clock
        self._granted: dict[tuple[str, ...], _Token] = {}
        self._credentials: Credentials | None = None
        self._asked = False

    def header(self, scopes: tuple[str, ...]) -> str | None:
        """Return what was granted for these scopes, None where nothing was, or not for long any more."""
        token = self._granted.get(scopes)
        return token.header if token and self._clock() < token.ends_at else None

    def answer(self, response: httpx.Response, scopes: tuple[str, ...], what: str) -> None:
        """Get what a 401 asks for; raises RegistryError where that cannot be had."""
        self._granted.pop(scopes, None)
        for challenge in challenges(", ".join(response.headers.get_list("WWW-Authenticate"))):
            login = self._login()
            if challenge.scheme == "bearer" and "realm" in challenge.parameters:
                self._granted[scopes] = self._token(challenge.parameters, scopes, login, what)
                return
            if challenge.scheme == "basic" and login is not None and login.username:
                self._granted[scopes] = _Token(_basic(login), float("inf"))
                return
        raise refused(response, what)

    def _login(self) -> Credentials | None:
        if not self._asked:
            self._credentials, self._asked = self._ask_credentials(), True
        return self._credentials

    def _token(
        self, parameters: Mapping[str, str], scopes: tuple[str, ...], login: Credentials | None, what: str
    ) -> _Token:
        realm = parameters["realm"]
        if urlsplit(realm).scheme != "https" and not self._plain_http:
            raise RegistryError(
                f"the registry sends logins for {what} to {realm}, which is not https",
                hint="ask the registry's owner; nothing was sent there",
            )
        response = self._send(_token_request(parameters, scopes, login))
        if not response.is_success:
            raise refused(response, what)
        return self._parsed(response, what)

    def _parsed(self, response: httpx.Response, what: str) -> _Token:
        try:
            answer: dict[str, Any] = response.json()
            token = answer.get("token") or answer["access_token"]
            life_s = float(answer.get("expires_in") or _SHORTEST_LIFE_S)
        except (ValueError, KeyError, TypeError, AttributeError):  # not chained: it may hold a token
            host = response.request.url.host
            raise RegistryError(
                f"{host} gives no token for {what}", hint="is it the registry's token service?"
            ) from None
        return _Token(f"Bearer {token}", self._clock() + max(life_s, _SHORTEST_LIFE_S) - _MARGIN_S)


def _token_request(parameters: Mapping[str, str], scopes: Iterable[str], login: Credentials | None) -> httpx.Request:
    service = {"service": parameters["service"]} if "service" in parameters else {}
    if login is not None and login.identity_token:
        form = {"grant_type": "refresh_token", "refresh_token": login.identity_token, "client_id": CLIENT_ID}
        return httpx.Request("POST", parameters["realm"], data={**form, **service, "scope": " ".join(scopes)})
    query = [*service.items(), *(("scope", scope) for scope in scopes)]
    headers = {"Authorization": _basic(login)} if login is not None else {}
    url = httpx.URL(parameters["realm"])
    return httpx.Request(
        "GET", url.copy_merge_params(httpx.QueryParams([*url.params.multi_items(), *query])), headers=headers
    )


def _basic(login: Credentials) -> str:
    return "Basic " + base64.b64encode(f"{login.username}:{login.password}".encode()).decode()
