"""One registry, spoken with by HTTP: manifests, blobs, uploads.

Protocol: https://github.com/opencontainers/distribution-spec/blob/main/spec.md
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, Self
from urllib.parse import urljoin

import httpx

from lj_image.errors import ArtifactError
from lj_image.lock.http import backoff_s, ssl_context, wait_after
from lj_image.oci.descriptor import Descriptor
from lj_image.oci.digest import Digest
from lj_image.oci.manifest import LARGEST_BYTES
from lj_image.oci.media_types import MediaType
from lj_image.oci.reference import DOCKER_HUB
from lj_image.oci.source import Stream
from lj_image.oci.streams import BLOCK_BYTES
from lj_image.oci.values import Value
from lj_image.registry.auth import Authorizer
from lj_image.registry.blob_stream import BlobStream
from lj_image.registry.credentials import Credentials, credentials_for
from lj_image.registry.faults import RegistryError, refused, unreachable

ATTEMPTS: Final = 5
MANIFEST_TYPES: Final = (
    MediaType.OCI_INDEX,
    MediaType.OCI_MANIFEST,
    MediaType.DOCKER_LIST,
    MediaType.DOCKER_MANIFEST,
)
_HUB_HOST: Final = "registry-1.docker.io"
_TIMEOUT: Final = httpx.Timeout(120.0, connect=20.0)
_MOST_REDIRECTS: Final = 5
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})

Watch = Callable[[int], None]
"""Is told how many bytes of a blob are sent; anew from 0 when it has to be sent again."""


@dataclass(frozen=True, slots=True)
class FetchedManifest:
    """A manifest or index as a registry gives it, its digest found right."""

    content: bytes
    descriptor: Descriptor


class Registry:
    """A registry. Methods raise RegistryError, a PublishError, where it refuses or does not answer."""

    def __init__(
        self,
        host: str,
        *,
        credentials: Callable[[str], Credentials | None] = credentials_for,
        plain_http: bool | None = None,
        transport: httpx.BaseTransport | None = None,
        environ: Mapping[str, str] = os.environ,
        sleep: Callable[[float], None] = time.sleep,
        attempts: int = ATTEMPTS,
    ) -> None:
        self.host = host
        plain = is_loopback(host) if plain_http is None else plain_http
        self._base = f"{'http' if plain else 'https'}://{_HUB_HOST if host == DOCKER_HUB else host}/v2/"
        self._sleep, self._attempts = sleep, attempts
        self._client = httpx.Client(
            verify=ssl_context(environ),
            timeout=_TIMEOUT,
            transport=transport,
            trust_env=not is_loopback(host),  # no proxy leads to this machine
            headers={"User-Agent": "lj-image", "Accept-Encoding": "identity"},
        )
        self._authorizer = Authorizer(lambda: credentials(host), self._patiently, plain_http=plain)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self._client.close()

    def manifest(self, repository: str, wanted: str) -> FetchedManifest:
        """Return the manifest or index of a tag or digest; raises ArtifactError for one that is not that of the digest.

        A thing that is not there is a RegistryError whose `is_absence` is true.
        """
        what = f"manifest {repository}:{wanted}" if ":" not in wanted else f"manifest {repository}@{wanted}"
        headers = {"Accept": ", ".join(MANIFEST_TYPES)}
        response = self._ask("GET", f"{repository}/manifests/{wanted}", _pull(repository), what, headers=headers)
        content = response.content
        said = wanted if ":" in wanted else response.headers.get("Docker-Content-Digest")
        if len(content) > LARGEST_BYTES or (said is not None and str(Digest.of(content)) != said):
            raise ArtifactError(f"{self.host} delivers another {what} than that of {said}", hint="try again, or later")
        typed = response.headers.get("Content-Type", "").partition(";")[0].strip()
        media_type = Value.parse(content, what)["mediaType"].text(typed)
        return FetchedManifest(content, Descriptor(media_type, Digest.of(content), len(content)))

    def head(self, repository: str, wanted: str) -> Digest | None:
        """Return the digest under a tag; None where the registry says that there is none.

        What is not surely absent is an error: a tag that is taken for absent would be written over.
        """
        path, headers = f"{repository}/manifests/{wanted}", {"Accept": ", ".join(MANIFEST_TYPES)}
        response = self._send("HEAD", path, _pull(repository), f"manifest {repository}:{wanted}", headers=headers)
        said = response.headers.get("Docker-Content-Digest")
        if response.is_success and said:
            return Digest.parse(said)
        try:  # an answer to HEAD has no words, and some registries do not tell the digest
            return self.manifest(repository, wanted).descriptor.digest
        except RegistryError as error:
            if error.is_absence:
                return None
            raise

    def has_blob(self, repository: str, digest: Digest) -> bool:
        """Say whether a repository has a blob."""
        response = self._send("HEAD", f"{repository}/blobs/{digest}", _pull(repository), f"blob {repository}@{digest}")
        if response.status_code not in (200, 404):
            raise refused(response, f"blob {repository}@{digest}")
        return response.status_code == 200

    def open_blob(self, repository: str, descriptor: Descriptor) -> Stream:
        """Open a blob; what is read is held against its digest, and a lost connection is taken up where it ended."""
        open_from = partial(self._open_blob, repository, descriptor.digest)
        return BlobStream(descriptor, f"{self.host}/{repository}", open_from, self._attempts)

    def _open_blob(self, repository: str, digest: Digest, offset: int) -> httpx.Response:
        what, headers = f"blob {repository}@{digest}", {"Range": f"bytes={offset}-"} if offset else {}
        path = f"{repository}/blobs/{digest}"
        response = self._send("GET", path, _pull(repository), what, headers=headers, is_stream=True)
        if response.status_code == (206 if offset else 200):
            return response
        self._read(response)
        raise refused(response, what)

    def mount(self, repository: str, digest: Digest, origin: str) -> bool:
        """Let a repository have a blob that another one of this registry has; say whether the registry did so."""
        scopes = (*_push(repository), *_pull(origin))
        path = f"{repository}/blobs/uploads/?mount={digest}&from={origin}"
        try:
            response = self._send("POST", path, scopes, f"mount of {digest} from {origin}")
        except RegistryError as error:
            if error.status is None:
                raise
            return False  # who may not read the other repository uploads
        if response.status_code == 202 and (location := self._location(response)) is not None:
            with suppress(RegistryError):  # an upload that nobody goes on with ends by itself, too
                self._send("DELETE", location, _push(repository), f"upload to {repository}")
        return response.status_code == 201

    def upload(
        self,
        repository: str,
        digest: Digest,
        size_bytes: int,
        content: Callable[[], Stream],
        watch: Watch = lambda sent_bytes: None,
    ) -> None:
        """Send a blob in one piece; `content` is opened anew for each attempt.

        Raises ArtifactError where it has another size than it should.
        """
        what = f"blob {repository}@{digest}"
        for attempt in range(self._attempts):
            failure, wait_s = self._upload_once(repository, digest, size_bytes, content, watch, attempt)
            if failure is None:
                return
            if wait_s is None or attempt + 1 == self._attempts:
                raise failure
            self._sleep(wait_s)
        raise AssertionError(what)

    def _upload_once(
        self,
        repository: str,
        digest: Digest,
        size_bytes: int,
        content: Callable[[], Stream],
        watch: Watch,
        attempt: int,
    ) -> tuple[RegistryError | None, float | None]:
        """Return what went wrong, and how long to wait before the next attempt, None where it would end the same."""
        what, scopes = f"blob {repository}@{digest}", _push(repository)
        begun = self._ask("POST", f"{repository}/blobs/uploads/", scopes, f"upload to {repository}")
        location = self._location(begun)
        if location is None:
            return refused(begun, f"upload to {repository} without a place for it"), None
        url = f"{location}{'&' if '?' in location else '?'}digest=sha256%3A{digest.hex}"
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size_bytes)}
        if (granted := self._authorizer.header(scopes)) and self._is_own(url):
            headers["Authorization"] = granted
        try:
            with content() as stream:
                body = _counted(stream, size_bytes, what, watch)
                response = self._client.put(url, content=body, headers=headers)
        except httpx.TransportError as error:
            return unreachable(error, self.host), backoff_s(attempt)
        if response.status_code in (200, 201, 204):
            return None, None
        if response.status_code == 401:
            self._authorizer.answer(response, scopes, what)
        is_lost = response.status_code in (401, 404, 416)  # the login aged, or the upload is not known any more
        return refused(response, what), 0.0 if is_lost else wait_after(response, attempt)

    def put_manifest(self, repository: str, wanted: str, content: bytes, media_type: str) -> Digest:
        """Store a manifest under a tag or its digest; return its digest. The blobs that it names have to be there."""
        what, headers = f"manifest {repository}:{wanted}", {"Content-Type": media_type}
        path = f"{repository}/manifests/{wanted}"
        response = self._ask("PUT", path, _push(repository), what, headers=headers, content=content)
        digest, said = Digest.of(content), response.headers.get("Docker-Content-Digest")
        if said is not None and said != str(digest):
            raise RegistryError(f"{self.host} stored {what} as {said} instead of {digest}", hint="push again")
        return digest

    def _ask(
        self,
        method: str,
        path: str,
        scopes: tuple[str, ...],
        what: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> httpx.Response:
        response = self._send(method, path, scopes, what, headers=headers, content=content)
        if not response.is_success:
            raise refused(response, what)
        return response

    def _send(
        self,
        method: str,
        path: str,
        scopes: tuple[str, ...],
        what: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        is_stream: bool = False,
    ) -> httpx.Response:
        """Send a request, with a login where one is asked for; the answer may be a refusal."""
        url = urljoin(self._base, path)
        for _ in range(2):
            response = self._following(method, url, scopes, headers or {}, content, is_stream=is_stream)
            if response.status_code != 401:
                return response
            self._read(response)
            self._authorizer.answer(response, scopes, what)
        return self._following(method, url, scopes, headers or {}, content, is_stream=is_stream)

    def _following(
        self,
        method: str,
        url: str,
        scopes: tuple[str, ...],
        headers: Mapping[str, str],
        content: bytes | None,
        *,
        is_stream: bool,
    ) -> httpx.Response:
        """Follow redirects, such as to where blobs are stored; the login goes to the registry alone."""
        for _ in range(_MOST_REDIRECTS):
            granted = self._authorizer.header(scopes) if self._is_own(url) else None
            sent = {**headers, **({"Authorization": granted} if granted else {})}
            request = self._client.build_request(method, url, headers=sent, content=content)
            response = self._patiently(request, is_stream=is_stream)
            if response.status_code not in _REDIRECTS or "Location" not in response.headers:
                return response
            response.close()
            url = self._safe(urljoin(url, response.headers["Location"]))
        raise RegistryError(f"{self.host} leads from one address to the next, {_MOST_REDIRECTS} times")

    def _patiently(self, request: httpx.Request, *, is_stream: bool = False) -> httpx.Response:
        """Send a request whose body is in memory, again while a failure may be temporary."""
        for attempt in range(self._attempts):
            is_last = attempt + 1 == self._attempts
            try:
                response = self._client.send(request, stream=is_stream, follow_redirects=False)
            except httpx.TransportError as error:
                if is_last:
                    raise unreachable(error, request.url.netloc.decode()) from None
                wait_s: float | None = backoff_s(attempt)
            else:
                wait_s = wait_after(response, attempt)
                if wait_s is None or is_last:
                    return response
                response.close()
            self._sleep(wait_s or 0.0)
        raise AssertionError("the last attempt returns or raises")

    def _read(self, response: httpx.Response) -> None:
        """Read the words of an answer that was opened as a stream."""
        try:
            response.read()
        except httpx.TransportError as error:
            raise unreachable(error, self.host) from None
        finally:
            response.close()

    def _location(self, response: httpx.Response) -> str | None:
        """Return where an upload goes on; it may be relative (spec, "Pushing a blob monolithically")."""
        location = response.headers.get("Location")
        return None if location is None else self._safe(urljoin(str(response.request.url), location))

    def _is_own(self, url: str) -> bool:
        return _origin(url) == _origin(self._base)

    def _safe(self, url: str) -> str:
        """Return an address that we were sent to; never plain http from https.

        A registry behind a proxy may not know that it is spoken to by https: its own host is reached by https anyway.
        """
        own, other = httpx.URL(self._base), httpx.URL(url)
        if own.scheme == "https" and other.scheme == "http":
            if other.host != own.host:
                raise RegistryError(f"{self.host} leads to {other.host} without https", hint="ask the registry's owner")
            return str(other.copy_with(scheme="https", port=own.port))
        return url


def is_loopback(host: str) -> bool:
    """Say whether a host is this machine, where engines speak plain http with registries."""
    name = host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host
    return name in ("localhost", "[::1]") or name.startswith("127.")


def _pull(repository: str) -> tuple[str, ...]:
    return (f"repository:{repository}:pull",)


def _push(repository: str) -> tuple[str, ...]:
    return (f"repository:{repository}:pull,push",)


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = httpx.URL(url)
    return parts.scheme, parts.host, parts.port


def _counted(stream: Stream, size_bytes: int, what: str, watch: Watch) -> Iterator[bytes]:
    """Yield a stream of exactly this size; else the other side would wait for what never comes."""
    sent = 0
    watch(0)
    while block := stream.read(BLOCK_BYTES):
        sent += len(block)
        if sent > size_bytes:
            break
        yield block
        watch(sent)
    if sent != size_bytes:
        raise ArtifactError(f"the {what} has another size than {size_bytes} bytes", hint="build the image again")
