"""A registry in memory behind httpx.MockTransport: what it is asked is kept, and it fails when it is told to."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import parse_qs

import httpx

HOST = "r.example"
Answer = Callable[[httpx.Request], httpx.Response | None]


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def error(status: int, code: str, message: str = "", **headers: str) -> httpx.Response:
    return httpx.Response(status, json={"errors": [{"code": code, "message": message}]}, headers=headers)


@dataclass
class FakeRegistry:
    """Repositories of one host; the spec's answers, "Endpoints" end-1 to end-11."""

    blobs: dict[str, dict[str, bytes]] = field(default_factory=dict)
    manifests: dict[str, dict[str, tuple[bytes, str]]] = field(default_factory=dict)
    asked: list[httpx.Request] = field(default_factory=list)
    before: list[Answer] = field(default_factory=list)
    """Each may answer a request instead of the registry, and is taken away when it did."""
    location: str = "/v2/{repository}/blobs/uploads/1?_state=a%3D%3D"
    """Relative, as the spec allows."""
    elsewhere: str = ""
    """Where blobs really lie, if not here."""
    tells_digest: bool = True

    def transport(self) -> httpx.MockTransport:
        return httpx.MockTransport(self.answer)

    def paths(self, method: str) -> list[str]:
        return [request.url.path for request in self.asked if request.method == method]

    def answer(self, request: httpx.Request) -> httpx.Response:
        request.read()
        self.asked.append(request)
        for interference in self.before:
            try:
                response = interference(request)
            except httpx.TransportError:
                self.before.remove(interference)
                raise
            if response is not None:
                self.before.remove(interference)
                return response
        return self._answer(request)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if request.url.host != HOST:
            return httpx.Response(200, content=self._all_blobs()[path.rpartition("/")[2]])
        for pattern, method in (
            (r"/v2/(.+)/manifests/([^/]+)", self._manifest),
            (r"/v2/(.+)/blobs/uploads/(.*)", self._upload),
            (r"/v2/(.+)/blobs/([^/]+)", self._blob),
        ):
            if found := re.fullmatch(pattern, path):
                return method(request, *found.groups())
        return httpx.Response(404, text="page not found")

    def _all_blobs(self) -> dict[str, bytes]:
        return {digest: content for every in self.blobs.values() for digest, content in every.items()}

    def _manifest(self, request: httpx.Request, repository: str, wanted: str) -> httpx.Response:
        kept = self.manifests.setdefault(repository, {})
        if request.method == "PUT":
            digest = digest_of(request.content)
            kept[wanted] = kept[digest] = (request.content, request.headers["Content-Type"])
            return httpx.Response(201, headers={"Docker-Content-Digest": digest})
        if wanted not in kept:
            return error(404, "MANIFEST_UNKNOWN", "manifest unknown")
        content, media_type = kept[wanted]
        told = {"Docker-Content-Digest": digest_of(content)} if self.tells_digest else {}
        return httpx.Response(200, content=content, headers={"Content-Type": media_type, **told})

    def _blob(self, request: httpx.Request, repository: str, digest: str) -> httpx.Response:
        content = self.blobs.get(repository, {}).get(digest)
        if content is None:
            return error(404, "BLOB_UNKNOWN")
        if self.elsewhere and request.method == "GET":
            return httpx.Response(307, headers={"Location": f"{self.elsewhere}/{digest}?signature=x"})
        if found := re.fullmatch(r"bytes=(\d+)-", request.headers.get("Range", "")):
            return httpx.Response(206, content=content[int(found[1]) :])
        return httpx.Response(200, content=content)

    def _upload(self, request: httpx.Request, repository: str, upload: str) -> httpx.Response:
        query = parse_qs(request.url.query.decode())
        if request.method == "DELETE":
            return httpx.Response(204)
        if request.method == "PUT":
            (digest,) = query["digest"]
            assert query["_state"] == ["a=="], "the state comes back as it was given"
            if digest_of(request.content) != digest:
                return error(400, "DIGEST_INVALID", "provided digest did not match uploaded content")
            self.blobs.setdefault(repository, {})[digest] = request.content
            return httpx.Response(201)
        if "mount" in query and (content := self.blobs.get(query["from"][0], {}).get(query["mount"][0])) is not None:
            self.blobs.setdefault(repository, {})[query["mount"][0]] = content
            return httpx.Response(201)
        return httpx.Response(202, headers={"Location": self.location.format(repository=repository)})


def bearer(repository: str, actions: str, *, realm: str = "https://auth.example/token") -> Answer:
    """Return what asks every request to the registry for a token of this scope, and gives it at its realm."""

    def answer(request: httpx.Request) -> httpx.Response | None:
        if request.url.host == "auth.example":
            return httpx.Response(200, json={"token": f"granted {request.url.query.decode()}", "expires_in": 300})
        if request.url.host == HOST and "Authorization" not in request.headers:
            challenge = f'Bearer realm="{realm}",service="r.example",scope="repository:{repository}:{actions}"'
            return error(401, "UNAUTHORIZED", "authentication required", **{"WWW-Authenticate": challenge})
        return None

    return answer


def once(status: int, code: str = "UNAVAILABLE", method: str = "", **headers: str) -> Answer:
    """Return what answers the next request so."""
    return lambda request: error(status, code, **headers) if method in ("", request.method) else None


def cut(method: str) -> Answer:
    """Return what loses the connection of the next request with a method."""

    def answer(request: httpx.Request) -> httpx.Response | None:
        if request.method == method:
            raise httpx.WriteError("Broken pipe")
        return None

    return answer


def manifest_json(**members: object) -> bytes:
    return json.dumps(members).encode()
