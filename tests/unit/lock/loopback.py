"""A package index and archive server on loopback, with the faults of real ones; and the tiny wheels that it offers."""

from __future__ import annotations

import base64
import hashlib
import http.server
import io
import json
import secrets
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

Handler = http.server.BaseHTTPRequestHandler
Fault = Callable[[Handler, bytes], None]
"""Answers one request in the place of the right answer; is given the right body."""


def wheel(
    name: str,
    version: str,
    requires: Iterable[str] = (),
    *,
    tag: str = "py3-none-any",
    payload: bytes = b"",
    extras: Iterable[str] = (),
) -> tuple[str, bytes]:
    """Return the file name and the bytes of an installable wheel."""
    stem = f"{name.replace('-', '_')}-{version}"
    metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}"]
    metadata += [f"Provides-Extra: {extra}" for extra in extras]
    metadata += [f"Requires-Dist: {requirement}" for requirement in requires]
    members = {
        f"{name.replace('-', '_')}/__init__.py": payload,
        f"{stem}.dist-info/METADATA": ("\n".join(metadata) + "\n").encode(),
        f"{stem}.dist-info/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n".encode(),
    }
    rows = [f"{path},sha256={_record_hash(content)},{len(content)}" for path, content in members.items()]
    members[f"{stem}.dist-info/RECORD"] = "\n".join([*rows, f"{stem}.dist-info/RECORD,,", ""]).encode()
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for path, content in members.items():
            archive.writestr(zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0)), content)
    return f"{stem}-{tag}.whl", target.getvalue()


def sdist(name: str, version: str, pyproject: str = "") -> tuple[str, bytes]:
    """Return the file name and the bytes of a source distribution whose metadata needs no build (PEP 643)."""
    stem = f"{name}-{version}"
    members = {
        "PKG-INFO": f"Metadata-Version: 2.2\nName: {name}\nVersion: {version}\n",
        "pyproject.toml": pyproject or '[build-system]\nrequires = []\nbuild-backend = "setuptools.build_meta"\n',
    }
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as archive:
        for path, text in members.items():
            member = tarfile.TarInfo(f"{stem}/{path}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return f"{stem}.tar.gz", target.getvalue()


def _record_hash(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


@dataclass
class Loopback:
    """What one server offers, how it misbehaves, and what it was asked."""

    projects: dict[str, dict[str, bytes]] = field(default_factory=dict)
    archives: dict[str, bytes] = field(default_factory=dict)
    credentials: tuple[str, str] | None = None
    pages: str = "json"
    """`json`, or `html` without sizes, or `bare` for html without digests either."""
    file_host: str = ""
    """The start of files' addresses, when they lie elsewhere."""
    faults: dict[str, list[Fault]] = field(default_factory=dict)
    """By file name; each is used once."""
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    url: str = ""

    @property
    def simple(self) -> str:
        """The address of the index."""
        return f"{self.url}/simple"

    def offer(self, name: str, version: str, requires: Iterable[str] = (), **options: Any) -> bytes:
        """Put a wheel on the index and return its bytes."""
        file, content = wheel(name, version, requires, **options)
        self.projects.setdefault(name, {})[file] = content
        return content

    def asked(self, end: str) -> list[dict[str, str]]:
        """Return the headers of the GET requests whose path ends so."""
        return [headers for method, path, headers in self.requests if method == "GET" and path.endswith(end)]

    def body(self, path: str) -> tuple[bytes, str] | None:
        """Return what lies at a path, and its type."""
        _, _, path = path.strip("/").partition("/")
        kind, _, rest = path.partition("/")
        if kind == "simple" and rest in self.projects:
            return self._page(rest)
        if kind == "files":
            project, _, file = rest.partition("/")
            content = self.projects.get(project, {}).get(file)
        else:
            content = self.archives.get(rest) if kind == "archives" else None
        return None if content is None else (content, "application/octet-stream")

    def _page(self, project: str) -> tuple[bytes, str]:
        files = self.projects[project]
        links = {file: f"{self.file_host or self.url}/files/{project}/{file}" for file in files}
        if self.pages == "json":
            entries = [
                {
                    "filename": file,
                    "url": links[file],
                    "size": len(content),
                    "hashes": {"sha256": hashlib.sha256(content).hexdigest()},
                }
                for file, content in files.items()
            ]
            page: dict[str, Any] = {"meta": {"api-version": "1.1"}, "name": project, "files": entries, "versions": []}
            return json.dumps(page).encode(), "application/vnd.pypi.simple.v1+json"
        marks = {file: f"#sha256={hashlib.sha256(content).hexdigest()}" for file, content in files.items()}
        rows = [f'<a href="{links[file]}{marks[file] if self.pages == "html" else ""}">{file}</a>' for file in files]
        return f"<!DOCTYPE html><html><body>{'<br>'.join(rows)}</body></html>".encode(), "text/html"

    def refuses(self, authorization: str | None) -> bool:
        """Say whether a request comes without the right user and password."""
        if self.credentials is None:
            return False
        expected = base64.b64encode(":".join(self.credentials).encode()).decode()
        return authorization != f"Basic {expected}"


def start(loopback: Loopback) -> http.server.ThreadingHTTPServer:
    """Serve on a free port, in the background; sets the address."""

    class RequestHandler(Handler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            loopback.requests.append((self.command, self.path, dict(self.headers.items())))
            if loopback.refuses(self.headers.get("Authorization")):
                answer(self, 401, b"", {"WWW-Authenticate": 'Basic realm="index"'})
                return
            found = loopback.body(self.path)
            if found is None:
                answer(self, 404, b"")
                return
            faults = loopback.faults.get(self.path.rpartition("/")[2]) if self.command == "GET" else None
            if faults:
                faults.pop(0)(self, found[0])
                return
            answer_range(self, *found)

        def log_message(self, format: str, *args: object) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), RequestHandler)
    server.daemon_threads = True
    unique = secrets.token_hex(4)  # a port may be used again, and uv's cache knows files by address
    loopback.url = f"http://127.0.0.1:{server.server_address[1]}/{unique}"
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    return server


def answer(handler: Handler, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
    """Send a whole response."""
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
        handler.send_header(name, value)
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(body)


def answer_range(handler: Handler, body: bytes, content_type: str) -> None:
    """Send a body, or the part of it that is asked for."""
    asked = handler.headers.get("Range", "")
    start_text, _, end_text = asked.removeprefix("bytes=").partition("-")
    if not asked:
        answer(handler, 200, body, {"Content-Type": content_type, "Accept-Ranges": "bytes"})
        return
    first = int(start_text) if start_text else len(body) - int(end_text)
    last = int(end_text) if start_text and end_text else len(body) - 1
    if first >= len(body):
        answer(handler, 416, b"", {"Content-Range": f"bytes */{len(body)}"})
        return
    part = body[first : last + 1]
    headers = {"Content-Range": f"bytes {first}-{first + len(part) - 1}/{len(body)}", "Content-Type": content_type}
    answer(handler, 206, part, headers)


def cut_after(count: int) -> Fault:
    """Promise the whole and close after `count` bytes."""

    def fault(handler: Handler, body: bytes) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body[:count])
        handler.wfile.flush()
        handler.close_connection = True

    return fault


def status(code: int, **headers: str) -> Fault:
    """Answer with a status instead."""

    def fault(handler: Handler, body: bytes) -> None:
        answer(handler, code, b"no", {name.replace("_", "-"): value for name, value in headers.items()})

    return fault


def whole(handler: Handler, body: bytes) -> None:
    """Ignore the Range that was asked for."""
    answer(handler, 200, body)


def hang_after(count: int, until: threading.Event) -> Fault:
    """Send `count` bytes and then nothing."""

    def fault(handler: Handler, body: bytes) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body[:count])
        handler.wfile.flush()
        until.wait(30)
        handler.close_connection = True

    return fault
