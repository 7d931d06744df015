"""Whether an address answers from here: one short question, no second try. For a look at the machine, not for work."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

import httpx

from lj_image.errors import LjImageError
from lj_image.lock.http import Address, Client

TIMEOUT_S: Final = 6.0


@dataclass(frozen=True, slots=True)
class Reach:
    """What came of asking an address."""

    status: int | None
    """None when nobody answered."""
    failure: str = ""
    """Why nobody did."""
    has_name: bool = True
    """Whether the host's name leads anywhere from here."""


def reach(url: str, address: Address, environ: Mapping[str, str] = os.environ, timeout_s: float = TIMEOUT_S) -> Reach:
    """Ask for a page and read no more than its status; a `file://` address answers 200 or 404."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        return Reach(200 if Path(url2pathname(parts.path)).exists() else 404)
    try:
        with (
            Client(environ, attempts=1, timeout=httpx.Timeout(timeout_s)) as client,
            client.stream(url, address) as got,
        ):
            return Reach(got.status_code)
    except httpx.HTTPError as error:
        nowhere = any(isinstance(cause, socket.gaierror) for cause in _causes(error))
        return Reach(None, f"{type(error).__name__}: {error}".rstrip(": "), not nowhere)
    except (httpx.InvalidURL, LjImageError) as error:
        return Reach(None, str(error))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
