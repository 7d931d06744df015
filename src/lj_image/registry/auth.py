"""Logging in: Basic, or a token for some scopes from the service that the registry names. Safe for threads.

Protocol: https://distribution.github.io/distribution/spec/auth/token/ and …/auth/oauth/
"""

from __future__ import annotations

import re
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import httpx

from lj_image.registry.access import Access
from lj_image.registry.challenge import Challenge, asked_scopes, challenges, repository_of
from lj_image.registry.faults import RegistryError, diagnosis, refused
from lj_image.registry.leading import led_to
from lj_image.registry.login import Credentials
from lj_image.registry.token_request import basic, token_requests

_SHORTEST_LIFE_S: Final = 60.0
"""Of a token whose answer says nothing, and of one that says less (spec/auth/token, "expires_in"): the end of what
really lives shorter shows as a 401."""
_SHORTEST_MARGIN_S: Final = 10.0
_MARGIN: Final = 0.1
"""The part of a token's life before its end in which it is renewed."""
_TOKEN: Final = re.compile(r"[\x20-\x7e]+")
"""What may stand in a header."""
_LOGIN_REFUSED: Final = (400, 401, 403)
"""400 is OAuth2's `invalid_grant` (RFC 6749 §5.2)."""
_NO_SUCH_FORM: Final = (404, 405)

Send = Callable[[httpx.Request], httpx.Response]
Scopes = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Grant:
    """What a registry takes as a login for some scopes."""

    header: str = field(repr=False)
    renew_at: float = float("inf")
    """When another is asked for, by our clock: the service's may go otherwise."""
    challenge: Challenge = field(default=Challenge("basic"), repr=False)


class Authorizer:
    """Keeps what one registry has granted, by scopes; asks anew when it is old or refused, and once for all threads."""

    def __init__(
        self,
        access: Access,
        credentials: Callable[[str], Credentials | None],
        send: Send,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._access, self._ask_credentials, self._send, self._clock = access, credentials, send, clock
        self._lock = threading.Lock()
        self._turns: defaultdict[Scopes, threading.Lock] = defaultdict(threading.Lock)
        self._granted: dict[Scopes, _Grant] = {}
        self._failed: dict[Scopes, RegistryError] = {}
        self._logins: dict[str, Credentials | None] = {}

    def header(self, scopes: Scopes, what: str) -> str | None:
        """Return what was granted for these scopes, anew if it ends soon; None where nothing was.

        Raises RegistryError where a new one cannot be had.
        """
        grant = self._granted.get(scopes)
        if grant is None:
            return None
        if self._clock() < grant.renew_at:
            return grant.header
        return self._renewed(grant.header, (grant.challenge,), scopes, what).header

    def answer(self, response: httpx.Response, scopes: Scopes, what: str) -> None:
        """Get what a 401 of the registry itself asks for; raises RegistryError where that cannot be had."""
        asked = challenges(", ".join(response.headers.get_list("WWW-Authenticate")))
        if not asked and (grant := self._granted.get(scopes)) is not None:
            asked = (grant.challenge,)
        if not asked:
            raise refused(response, what)
        self._renewed(response.request.headers.get("Authorization"), asked, scopes, what)

    def _renewed(self, old: str | None, asked: Iterable[Challenge], scopes: Scopes, what: str) -> _Grant:
        """Return what is granted instead of `old`; whoever comes while another thread asks gets what that one got."""
        with self._lock:
            turn, failed_before = self._turns[scopes], self._failed.get(scopes)
        with turn:
            grant, failed = self._granted.get(scopes), self._failed.get(scopes)
            if grant is not None and grant.header != old:
                return grant
            if failed is not None and (failed is not failed_before or failed.status in _LOGIN_REFUSED):
                raise _again(failed)
            self._granted.pop(scopes, None)
            try:
                grant = self._granted[scopes] = self._obtained(old, asked, scopes, what)
            except RegistryError as error:
                self._failed[scopes] = error
                raise
            self._failed.pop(scopes, None)
            return grant

    def _obtained(self, old: str | None, asked: Iterable[Challenge], scopes: Scopes, what: str) -> _Grant:
        for challenge in asked:
            for login in self._logins_for(repository_of(scopes)):
                if login is not None and (header := _kept(login, challenge)) is not None:
                    if header == old:
                        continue  # refused as it is
                    return _Grant(header)
                if challenge.scheme == "bearer" and "realm" in challenge.parameters:
                    return self._token(challenge, scopes, login, what)
        raise self._no_login(old, what)

    def _logins_for(self, repository: str) -> Iterator[Credentials | None]:
        """Give the login that is known, then what its place holds now, if that is another: helpers' secrets run out."""
        if repository not in self._logins:
            self._logins[repository] = self._ask_credentials(self._key(repository))
            yield self._logins[repository]
            return
        known = self._logins[repository]
        yield known
        now = self._ask_credentials(self._key(repository))
        if now != known:
            self._logins[repository] = now
            yield now

    def _key(self, repository: str) -> str:
        return f"{self._access.host}/{repository}" if repository else self._access.host

    def _token(self, challenge: Challenge, scopes: Scopes, login: Credentials | None, what: str) -> _Grant:
        realm = led_to(self._access, self._access.base, challenge.parameters["realm"])
        parameters = {**challenge.parameters, "realm": realm}
        wanted = asked_scopes(scopes, parameters.get("scope", ""))
        response = self._asked(parameters, wanted, login)
        for other in self._others(login, repository_of(scopes)) if response.status_code in _LOGIN_REFUSED else ():
            login, response = other, self._asked(parameters, wanted, other)
            if response.is_success:
                self._logins[repository_of(scopes)] = other
                break
        if response.status_code in _LOGIN_REFUSED:
            raise self._refused_login(response, login, what)
        if not response.is_success:
            raise refused(response, what)
        return self._parsed(response, challenge, what)

    def _asked(self, parameters: Mapping[str, str], scopes: Scopes, login: Credentials | None) -> httpx.Response:
        """Ask for a token, in the other form where the service does not know one."""
        first, second = token_requests(parameters, scopes, login)
        response = self._send(first)
        return self._send(second) if second is not None and response.status_code in _NO_SUCH_FORM else response

    def _others(self, login: Credentials | None, repository: str) -> Iterator[Credentials]:
        """Give what else may be a login after one was refused: its password, then what its place holds now."""
        if login is None:
            return
        if login.identity_token and login.password:
            yield replace(login, identity_token="")
        now = self._ask_credentials(self._key(repository))
        if now is not None and now != login:
            yield now

    def _parsed(self, response: httpx.Response, challenge: Challenge, what: str) -> _Grant:
        try:
            answer: dict[str, Any] = response.json()
            token = str(answer.get("token") or answer["access_token"])
            life_s = max(_SHORTEST_LIFE_S, float(answer.get("expires_in") or 0.0))
        except (ValueError, KeyError, TypeError, AttributeError):  # not chained: it may hold a token
            token, life_s = "", 0.0
        if not _TOKEN.fullmatch(token):
            service = response.request.url.host
            raise RegistryError(f"{service} gives no token for {what}", hint="is it the registry's token service?")
        renew_at = self._clock() + life_s - max(_SHORTEST_MARGIN_S, life_s * _MARGIN)
        return _Grant(f"Bearer {token}", renew_at, challenge)

    def _no_login(self, old: str | None, what: str) -> RegistryError:
        host = self._access.host
        words = f"{host} {'refuses the' if old else 'wants a'} login for {what}"
        return RegistryError(words, hint=f"run: docker login {host}", status=401)

    def _refused_login(self, response: httpx.Response, login: Credentials | None, what: str) -> RegistryError:
        host, (code, words) = self._access.host, diagnosis(response)
        for secret in filter(None, (login.password, login.identity_token) if login else ()):
            words = words.replace(secret, "…")
        whose = f" of {login.username}" if login and login.username else ""
        message = f"{host} refuses the login{whose} for {what}{f': {words}' if words else ''}"
        return RegistryError(message, hint=f"run: docker login {host}", status=response.status_code, code=code)


def _kept(login: Credentials, challenge: Challenge) -> str | None:
    """Return the header for a login that needs no token service."""
    if challenge.scheme == "bearer" and login.registry_token:
        return f"Bearer {login.registry_token}"
    return basic(login) if challenge.scheme == "basic" and login.username else None


def _again(error: RegistryError) -> RegistryError:
    """Return the same for another thread: an exception that is raised in two mixes their traces."""
    return RegistryError(error.message, hint=error.hint, status=error.status, code=error.code)
