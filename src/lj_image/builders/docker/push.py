"""An image id of an engine -> a tag at a registry: ask for the tag, push, and read every word of the answer.

The requests are docker-py's own session, because its `push` gives up after 60 s of silence (an engine that compresses
a layer of gigabytes says nothing) and leaves no way to hang up, which is what stops the engine on Ctrl-C.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import docker.auth
import requests
from docker import APIClient
from docker.errors import APIError, NotFound
from docker.utils import parse_repository_tag

from lj_image.builders.docker.credentials import credentials_for
from lj_image.builders.docker.engine import find_image
from lj_image.builders.docker.push_faults import NETWORK_HINT, NO_SUCH_TAG, explain
from lj_image.builders.docker.push_progress import LayerPush, LayerState, NoProgress, PushProgress
from lj_image.errors import EngineError, PublishError

CONNECT_S: Final = 30.0
ASK_S: Final = 120.0
"""An engine tries a registry that does not answer with https, then with http: 25 s each with 20.10 and 26.1."""
PUSH_SILENCE_S: Final = None
"""How long an engine may say nothing during a push: for ever, for it works. It hangs up when it ends."""


def remote_digest(api: APIClient, sent_to: str, auth: Mapping[str, str] | None = None) -> str | None:
    """Return the digest that a registry holds under a tag, None when it has no such tag.

    The engine asks, with `auth` or what the docker config has for the registry; raises PublishError otherwise.
    """
    response = _ask(api, sent_to, credentials_for(sent_to) if auth is None else auth)
    if response.ok:
        return _described(response)
    words = _words(response)
    if NO_SUCH_TAG.search(words):
        return None
    raise explain(words, sent_to)


def push_tag(api: APIClient, image_id: str, sent_to: str, progress: PushProgress | None = None) -> str:
    """Push an image under a tag and return the digest that the engine says it has there; raises PublishError.

    The local tag that an engine needs for it is there only meanwhile, unless it was there before.
    """
    auth = credentials_for(sent_to)
    progress = progress or NoProgress()
    repository, tag = parse_repository_tag(sent_to)
    with _local_tag(api, image_id, sent_to), _engine():
        response = api.post(
            _url(api, f"/images/{repository}/push"),
            params={"tag": tag},
            headers=_auth_header(auth),
            stream=True,
            timeout=(CONNECT_S, PUSH_SILENCE_S),
        )
        progress.begin(sent_to)
        try:
            if not response.ok:
                raise explain(_words(response), sent_to)
            return read_stream(_messages(response), sent_to, progress)
        finally:
            response.close()  # hangs up: an engine that still pushes stops
            progress.end()


def image_digests(api: APIClient, image_id: str) -> tuple[str, ...] | None:
    """Return the manifest digests that the engine knows for an image, None when it has no such image."""
    found = find_image(api, image_id)
    if found is None:
        return None
    digests = (name.rpartition("@")[2] for name in found.get("RepoDigests") or ())
    # In a containerd image store the id is itself the digest of a manifest; elsewhere, of no manifest at all.
    return tuple(dict.fromkeys((*digests, str(found["Id"]))))


class EngineSender:
    """Publishes what one engine holds, through that engine."""

    is_parallel = False

    def __init__(self, api: APIClient) -> None:
        self._api = api

    def digests(self, image_id: str) -> tuple[str, ...] | None:
        """See `image_digests`."""
        return image_digests(self._api, image_id)

    def remote_digest(self, sent_to: str) -> str | None:
        """See `remote_digest`."""
        return remote_digest(self._api, sent_to)

    def push_everywhere(self, image_id: str, targets: Sequence[Any], wishes: Any, settled: Any) -> None:
        """Do nothing: an engine pushes to one place after the other."""

    def cut_off(self) -> None:
        """Do nothing: the thread that is interrupted asks itself."""

    def push(self, image_id: str, sent_to: str, progress: PushProgress | None = None) -> str:
        """See `push_tag`."""
        return push_tag(self._api, image_id, sent_to, progress)


_DIGEST = r"sha256:[0-9a-f]{64}"
_LAYER_STATES: Final[tuple[tuple[str, LayerState], ...]] = (
    ("Preparing", "waiting"),
    ("Waiting", "waiting"),
    ("Pushing", "sending"),
    ("Pushed", "sent"),
    ("Layer already exists", "there"),
    ("Mounted from", "there"),
    ("Retrying", "retrying"),
)


def read_stream(messages: Iterable[Mapping[str, Any]], sent_to: str, progress: PushProgress) -> str:
    """Read a push to its end and return the digest; raises PublishError for an error anywhere, or without a digest."""
    tag = sent_to.rpartition(":")[2]
    digest, errors = None, dict[str, None]()
    for message in messages:
        if error := _error_in(message):
            errors[error] = None
        elif found := _digest_in(message, tag):
            digest = found
        elif layer := _layer_in(message):
            progress.layer(layer)
    if errors:
        raise explain("; ".join(errors), sent_to)
    if digest is None:
        raise PublishError(
            f"the push of {sent_to} ended without a digest: it cannot be known whether it is there",
            hint="push again; the engine's own log may say more",
        )
    return digest


def _error_in(message: Mapping[str, Any]) -> str | None:
    detail = message.get("errorDetail")
    words = detail.get("message") if isinstance(detail, Mapping) else None
    found = words or message.get("error")
    if found or "error" in message or "errorDetail" in message:
        return str(found or "an error without words")
    return None


def _digest_in(message: Mapping[str, Any], tag: str) -> str | None:
    """Return the final digest: a message of its own, but with a containerd image store (26.1) only a status line."""
    aux = message.get("aux")
    if isinstance(aux, Mapping) and aux.get("Digest"):
        return str(aux["Digest"])
    found = re.fullmatch(rf"{re.escape(tag)}: digest: ({_DIGEST}) size: \d+", str(message.get("status", "")))
    return found[1] if found else None


def _layer_in(message: Mapping[str, Any]) -> LayerPush | None:
    status = str(message.get("status", ""))
    state = next((state for start, state in _LAYER_STATES if status.startswith(start)), None)
    if state is None or "id" not in message:
        return None
    detail = message.get("progressDetail") or {}
    return LayerPush(str(message["id"]), state, int(detail.get("current", 0)), detail.get("total"))


def _messages(response: requests.Response) -> Iterator[dict[str, Any]]:
    for line in response.iter_lines(chunk_size=None):
        if not line.strip():
            continue
        try:
            message = json.loads(line)
        except ValueError:
            raise _unreadable(line.decode(errors="replace")) from None
        if isinstance(message, dict):
            yield message


def _described(response: requests.Response) -> str:
    try:
        return str(response.json()["Descriptor"]["digest"])
    except (ValueError, KeyError, TypeError):
        raise _unreadable(response.text) from None


def _unreadable(text: str) -> EngineError:
    return EngineError(f"the engine's answer cannot be read: {text[:200]!r}", hint="look into the engine's log")


def _words(response: requests.Response) -> str:
    """Return what an engine says about a refused request."""
    try:
        return str(response.json()["message"]).strip()
    except (ValueError, KeyError, TypeError):
        return response.text.strip() or f"HTTP {response.status_code}"


def _url(api: APIClient, path: str) -> str:
    return f"{api.base_url}/v{api.api_version}{path}"


def _auth_header(auth: Mapping[str, str]) -> dict[str, str]:
    """Return the header that an engine wants even for an anonymous request."""
    return {"X-Registry-Auth": docker.auth.encode_header(dict(auth)).decode()}


def _ask(api: APIClient, sent_to: str, auth: Mapping[str, str]) -> requests.Response:
    url, headers = _url(api, f"/distribution/{sent_to}/json"), _auth_header(auth)
    try:
        with _engine():
            return api.get(url, headers=headers, timeout=(CONNECT_S, ASK_S))
    except EngineError as error:
        if not isinstance(error.__cause__, requests.exceptions.ReadTimeout):
            raise
        host = sent_to.partition("/")[0]
        raise PublishError(f"{host} did not answer the engine in {ASK_S:.0f} s", hint=NETWORK_HINT) from None


@contextmanager
def _engine() -> Iterator[None]:
    """Translate what goes wrong between us and the engine."""
    try:
        yield
    except requests.exceptions.RequestException as error:
        raise EngineError(f"the engine went away: {error}", hint="is it running? see: docker info") from error


@contextmanager
def _local_tag(api: APIClient, image_id: str, name: str) -> Iterator[None]:
    """Give an image a name in the engine; afterwards the name is what it was before."""
    with _engine():
        image, before = find_image(api, image_id), find_image(api, name)
        if image is None:
            raise PublishError(f"the engine does not have the image {image_id}", hint="build it again")
        _tag(api, image_id, name)
    try:
        yield
    finally:
        with suppress(requests.exceptions.ConnectionError):  # the engine is gone: nothing can be tidied up
            if before:
                _tag(api, before["Id"], name)
            elif image.get("RepoTags"):  # without another name the engine would delete the image with this one
                _untag(api, name)


def _tag(api: APIClient, image_id: str, name: str) -> None:
    repository, tag = parse_repository_tag(name)
    try:
        api.tag(image_id, repository, tag)
    except APIError as error:
        raise PublishError(f"the engine cannot name the image {name}: {error.explanation}") from None


def _untag(api: APIClient, name: str) -> None:
    try:
        api.remove_image(name, noprune=True)
    except NotFound:  # somebody was quicker
        pass
    except APIError as error:
        raise EngineError(f"the temporary name {name} cannot be removed: {error.explanation}") from None
