"""Files in which docker, podman and CI systems keep logins, and the login that one of them has for a place.

Format: https://github.com/docker/cli/blob/master/cli/config/configfile/file.go and, for keys with a path,
https://github.com/containers/image/blob/main/docs/containers-auth.json.5.md
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from lj_image.errors import PublishError
from lj_image.oci.reference import DOCKER_HUB
from lj_image.registry.login import HUB_HOSTS, Credentials, key_of

_IN_ENVIRONMENT: Final = "DOCKER_AUTH_CONFIG"
_Kept = TypeVar("_Kept")


@dataclass(frozen=True, slots=True)
class DockerConfig:
    """What one of these files says of logins."""

    file: str
    auths: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    helpers: Mapping[str, str] = field(default_factory=dict)
    store: str = ""

    def helper(self, place: str) -> str | None:
        """Return the helper for a host, or host and repository; the longest key that fits counts."""
        return _longest(self.helpers, place)

    def has(self, place: str) -> bool:
        """Whether there is an entry for a place; an empty one says that a helper has the login."""
        return _longest(self.auths, place) is not None

    def login(self, place: str) -> Credentials | None:
        """Return the login that is kept in the file itself."""
        entry = _longest(self.auths, place)
        return None if entry is None else _decoded(entry)


def docker_configs(environ: Mapping[str, str], home: Path) -> Iterator[DockerConfig]:
    """Give every config there is, the first that knows a place counting; raises PublishError for an unreadable one."""
    if text := environ.get(_IN_ENVIRONMENT, "").strip():
        yield _parsed(text, f"in ${_IN_ENVIRONMENT}")
    folders = [Path(named)] if (named := environ.get("DOCKER_CONFIG")) else []
    docker = [folder / "config.json" for folder in (*folders, home / ".docker")]
    podman = [Path(named)] if (named := environ.get("REGISTRY_AUTH_FILE")) else []
    if runtime := environ.get("XDG_RUNTIME_DIR"):
        podman.append(Path(runtime) / "containers" / "auth.json")
    for file in (*[file for file in docker if file.exists()][:1], *(file for file in podman if file.exists())):
        yield _read(file)


def _read(file: Path) -> DockerConfig:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError):
        raise _unreadable(str(file)) from None
    return _parsed(text, str(file))


def _parsed(text: str, file: str) -> DockerConfig:
    try:
        values = json.loads(text)
        auths = {str(key): dict(entry or {}) for key, entry in (values.get("auths") or {}).items()}
        for entry in auths.values():
            _decoded(entry)
        helpers = {str(key): str(name) for key, name in (values.get("credHelpers") or {}).items()}
        return DockerConfig(file, auths, helpers, str(values.get("credsStore") or ""))
    except (ValueError, TypeError, AttributeError):  # not chained: such errors may quote a password
        raise _unreadable(file) from None


def _longest(kept: Mapping[str, _Kept], place: str) -> _Kept | None:
    """Return what is kept for a place `host/a/b`, else for `host/a`, else for its host, however that is written."""
    host, *path = place.split("/")
    by_place: dict[str, _Kept] = {}
    for key in sorted(kept, key=lambda key: key != key_of(host)):  # as `docker login` writes it goes before the others
        by_place.setdefault(_place_of(key), kept[key])
    for length in range(len(path), 0, -1):
        if (found := by_place.get("/".join((host, *path[:length])))) is not None:
            return found
    return by_place.get(_place_of(host))


def _place_of(key: str) -> str:
    """Return host, and podman's path, of a key, which may be an address with the protocol's version behind it."""
    place = key.removeprefix("https://").removeprefix("http://").rstrip("/")
    for version in ("/v1", "/v2"):
        place = place.removesuffix(version)
    host, slash, path = place.partition("/")
    return f"{DOCKER_HUB if host in HUB_HOSTS else host}{slash}{path}"


def _decoded(entry: Mapping[str, Any]) -> Credentials | None:
    """Read an entry of auths; raises ValueError for what is none. An empty one says that a helper has the login."""
    token, registry_token = str(entry.get("identitytoken") or ""), str(entry.get("registrytoken") or "")
    username, password = str(entry.get("username") or ""), str(entry.get("password") or "")
    if entry.get("auth"):
        username, colon, password = base64.b64decode(entry["auth"], validate=True).decode().partition(":")
        if not colon:
            raise ValueError
    is_login = username or token or registry_token
    return Credentials(username, password.strip("\0"), token, registry_token) if is_login else None


def _unreadable(file: str) -> PublishError:
    return PublishError(f"the docker config {file} cannot be read", hint="mend it, or run: docker login")
