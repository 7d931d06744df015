"""What a registry's refusal means, and the way out of each.

Answers: distribution spec, "Error Codes".
"""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator
from typing import Final

import httpx

from lj_image.errors import PublishError
from lj_image.lock.http import bare

NETWORK_HINT: Final = "a VPC host is reached only from inside its region's VPC: work on a machine there"
_LONGEST_WORDS: Final = 300
_ABSENT: Final = frozenset({"MANIFEST_UNKNOWN", "NAME_UNKNOWN", "NOT_FOUND", "BLOB_UNKNOWN"})


class RegistryError(PublishError):
    """A registry refused, or did not answer; `status` and `code` are what it said, None where it said nothing."""

    def __init__(
        self, message: str, *, hint: str | None = None, status: int | None = None, code: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.code = code

    @property
    def is_absence(self) -> bool:
        """Whether a registry said that there is no such thing; another server's 404 says nothing of the kind."""
        return self.status == 404 and self.code in _ABSENT


def refused(response: httpx.Response, what: str) -> RegistryError:
    """Explain an answer; its body has to be read."""
    host, status = response.request.url.netloc.decode(), response.status_code
    code, words = diagnosis(response)
    said = f": {words}" if words else ""
    if status == 401:
        message, hint = f"{host} refuses the login for {what}{said}", f"run: docker login {host}"
    elif status == 403:
        message = f"{host} does not let this account do that: {what}{said}"
        hint = f"log in as an account that may: docker login {host}"
    elif status == 404 and code in _ABSENT:
        message, hint = f"{host} has no {what}{said}", "is it spelt right, and was it pushed?"
    elif status == 429:
        message, hint = f"{host} wants fewer requests{said}", "wait a while, then try again; what is there stays there"
    else:
        message = f"{host} answers {status} to {what}{said}"
        hint = (
            "these are the words of the registry" if words else f"is it a registry? {bare(str(response.request.url))}"
        )
    return RegistryError(message, hint=hint, status=status, code=code)


def diagnosis(response: httpx.Response) -> tuple[str | None, str]:
    """Return the first code and all the words of a registry's answer; what is no such answer has neither."""
    try:
        errors = [item for item in json.loads(response.content)["errors"] if isinstance(item, dict)]
    except (ValueError, KeyError, TypeError, httpx.ResponseNotRead):
        return None, ""
    words = "; ".join(str(item.get("message") or item.get("code") or "") for item in errors)
    code = next((str(item["code"]) for item in errors if item.get("code")), None)
    return code, " ".join(words.split())[:_LONGEST_WORDS]


def unreachable(error: httpx.TransportError, host: str) -> RegistryError:
    """Explain a connection that was not had, or was lost."""
    causes = tuple(_causes(error))
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return RegistryError(f"{host} cannot be found by name from here", hint=NETWORK_HINT)
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        return RegistryError(f"{host} refuses the connection", hint="is the registry running, and is this its port?")
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        hint = "name its CA's file in SSL_CERT_FILE"
        return RegistryError(f"{host} has a certificate that is not trusted here: {error}", hint=hint)
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return RegistryError(f"{host} does not speak https: {error}", hint="plain http is for this machine alone")
    if isinstance(error, httpx.TimeoutException):
        return RegistryError(f"{host} does not answer from here", hint=NETWORK_HINT)
    words = str(error) or type(error).__name__
    return RegistryError(f"the connection to {host} was lost: {words}", hint="try again; what is there stays there")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
