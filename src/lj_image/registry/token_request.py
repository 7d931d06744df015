"""How a token service is asked: by GET with a password, or by a form (OAuth2), which takes identity tokens, too."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Final

import httpx

from lj_image.registry.login import TOKEN_USER, Credentials

CLIENT_ID: Final = "lj-image"


def token_requests(
    parameters: Mapping[str, str], scopes: Iterable[str], login: Credentials | None
) -> tuple[httpx.Request, httpx.Request | None]:
    """Return the request for a token, and another form of it where the service does not know the first.

    `parameters` are a challenge's, `realm` and maybe `service`. A secret stands in a header or a body, never in an
    address, which logs show.
    """
    listed = tuple(scopes)
    by_get = _by_get(parameters, listed, login)
    if login is None:
        return by_get, None
    by_form = _by_form(parameters, listed, login)
    return (by_form, by_get) if login.identity_token else (by_get, by_form)


def basic(login: Credentials) -> str:
    """Return the header for a password (RFC 7617 §2)."""
    username, password = login.username, login.password
    if login.identity_token and not password:
        username, password = username or TOKEN_USER, login.identity_token
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()


def _by_get(parameters: Mapping[str, str], scopes: tuple[str, ...], login: Credentials | None) -> httpx.Request:
    url = httpx.URL(parameters["realm"])
    query: list[tuple[str, str | int | float | bool | None]]
    query = [*url.params.multi_items(), *_service(parameters).items(), *(("scope", scope) for scope in scopes)]
    headers = {"Authorization": basic(login)} if login is not None else {}
    return httpx.Request("GET", url.copy_with(params=httpx.QueryParams(query)), headers=headers)


def _by_form(parameters: Mapping[str, str], scopes: tuple[str, ...], login: Credentials) -> httpx.Request:
    grant = (
        {"grant_type": "refresh_token", "refresh_token": login.identity_token}
        if login.identity_token
        else {"grant_type": "password", "username": login.username, "password": login.password}
    )
    form = {**grant, "client_id": CLIENT_ID, **_service(parameters), "scope": " ".join(scopes)}
    return httpx.Request("POST", parameters["realm"], data=form)


def _service(parameters: Mapping[str, str]) -> dict[str, str]:
    return {"service": parameters["service"]} if "service" in parameters else {}
