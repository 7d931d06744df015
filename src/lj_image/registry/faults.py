"""What a registry's refusal means, and the way out of each.

Answers: distribution spec, "Error Codes".
"""

from __future__ import annotations

import json
import re
import socket
import ssl
from collections.abc import Iterator
from typing import Final

import httpx

from lj_image.errors import PublishError
from lj_image.lock.http import bare
from lj_image.registry.remedies import to_create

NETWORK_HINT: Final = "a VPC host is reached only from inside its region's VPC: work on a machine there"
_LONGEST_WORDS: Final = 300
_ABSENT: Final = frozenset({"MANIFEST_UNKNOWN", "NAME_UNKNOWN", "NOT_FOUND", "BLOB_UNKNOWN"})
_WRITING: Final = frozenset({"POST", "PUT", "PATCH"})
_QUOTA: Final = re.compile(r"quota|storage limit|exceed|insufficient storage|billing|payment|overdue", re.IGNORECASE)
_REPOSITORY: Final = re.compile(r"/v2/(.+)/(?:blobs|manifests|tags|referrers)/")
_UPLOAD: Final = re.compile(r"(/blobs/uploads?)/.+")


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
    elif _lacks_room(status, words):
        message, hint = (
            f"{host} has no room for {what}{said}",
            "delete what is not needed there, or have its quota raised",
        )
    elif status == 403:
        message = f"{host} does not let this account do that: {what}{said}"
        hint = f"log in as an account that may: docker login {host}"
    elif status == 404 and _is_about_repository(response.request.method, code):
        message, hint = _lacks_repository(response, host, what, said)
    elif status == 404 and code in _ABSENT:
        message, hint = f"{host} has no {what}{said}", "is it spelt right, and was it pushed?"
    elif status == 429:
        message, hint = f"{host} wants fewer requests{said}", "wait a while, then try again; what is there stays there"
    elif status == 413:
        message, hint = (
            f"{host} takes nothing so large: {what}{said}",
            "the registry, or a proxy before it, has a limit",
        )
    else:
        message, hint = f"{host} answers {status} to {what}{said}", _hint_for(response, words)
    return RegistryError(message, hint=hint, status=status, code=code)


def _lacks_room(status: int, words: str) -> bool:
    """Say whether a refusal is about room; Harbor says so by 412, too."""
    return status == 507 or (status in (402, 403, 412) and _QUOTA.search(words) is not None)


def _is_about_repository(method: str, code: str | None) -> bool:
    """Say whether something could not be written for want of a repository; a lost upload is answered by 404, too."""
    return (code == "NAME_UNKNOWN" and method in _WRITING) or (method == "POST" and code in (None, "NOT_FOUND"))


def _lacks_repository(response: httpx.Response, host: str, what: str, said: str) -> tuple[str, str]:
    found = _REPOSITORY.match(response.request.url.path)
    if found is None:
        return f"{host} answers 404 to {what}{said}", _hint_for(response, said)
    return f"{host} has no repository {found[1]} to push to{said}", to_create(host, found[1])


def _hint_for(response: httpx.Response, words: str) -> str:
    if response.status_code >= 500:
        return "try again, or later; what is there stays there"
    if words:
        return "these are the words of the registry"
    # Whoever knows the whole address of an upload may write to it.
    shown = _UPLOAD.sub(r"\1/…", bare(str(response.request.url)))
    return f"is it a registry? {shown}"


def diagnosis(response: httpx.Response) -> tuple[str | None, str]:
    """Return the first code and all the words of a registry's answer; what is no such answer has neither."""
    try:
        errors = [item for item in json.loads(response.content)["errors"] if isinstance(item, dict)]
    except (ValueError, KeyError, TypeError, httpx.ResponseNotRead):
        return None, ""
    words = "; ".join(str(item.get("message") or item.get("code") or "") for item in errors)
    code = next((str(item["code"]) for item in errors if item.get("code")), None)
    return code, " ".join(words.split())[:_LONGEST_WORDS]


def unreachable(error: httpx.RequestError, host: str) -> RegistryError:
    """Explain a connection that was not had, or was lost."""
    causes = tuple(causes_of(error))
    if isinstance(error, httpx.ProxyError):
        hint = "HTTPS_PROXY, HTTP_PROXY and NO_PROXY say which proxy leads where"
        return RegistryError(f"the proxy does not lead to {host}: {error}", hint=hint)
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return RegistryError(f"{host} cannot be found by name from here", hint=NETWORK_HINT)
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        hint = "is the registry running, is this its port, and is the proxy right, if there is one?"
        return RegistryError(f"{host} refuses the connection", hint=hint)
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return _by_tls(causes, host)
    if isinstance(error, httpx.TimeoutException):
        return RegistryError(f"{host} does not answer from here", hint=NETWORK_HINT)
    words = str(error) or type(error).__name__
    return RegistryError(f"the connection to {host} was lost: {words}", hint="try again; what is there stays there")


def _by_tls(causes: tuple[BaseException, ...], host: str) -> RegistryError:
    """Explain what TLS failed by: a certificate of theirs, one of ours, or no TLS at all."""
    error = next(cause for cause in causes if isinstance(cause, ssl.SSLError))
    if isinstance(error, ssl.SSLCertVerificationError):
        hint = f'name its CA\'s file in SSL_CERT_FILE, or in the config: registries: {{"{host}": {{ca_bundle: FILE}}}}'
        return RegistryError(f"{host} has a certificate that is not trusted here: {error}", hint=hint)
    if "CERTIFICATE_REQUIRED" in str(error) or "ALERT" in str(error):
        hint = f'name yours in the config: registries: {{"{host}": {{client_certificate: FILE, client_key: FILE}}}}'
        return RegistryError(f"{host} wants another client certificate: {error}", hint=hint)
    hint = f'if it has plain http alone, say so in the config: registries: {{"{host}": {{plain_http: true}}}}'
    return RegistryError(f"{host} does not speak https: {error}", hint=hint)


def causes_of(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and what it came from."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
