"""An image id of an engine -> a tag at a registry: ask for the tag, push, and read every word of the answer.

The requests are docker-py's own session, because its `push` gives up after 60 s of silence (an engine that compresses
a layer of gigabytes says nothing) and leaves no way to hang up, which is what stops the engine on Ctrl-C.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TextIO

import docker.auth
import requests
from docker import APIClient
from docker.credentials.errors import StoreError
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.utils import parse_repository_tag
from docker.utils.config import find_config_file
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn

from lj_image.errors import EngineError, PublishError

CONNECT_S: Final = 30.0
ASK_S: Final = 120.0
"""An engine tries a registry that does not answer with https, then with http: 25 s each with 20.10 and 26.1."""
PUSH_SILENCE_S: Final = None
"""How long an engine may say nothing during a push: for ever, for it works. It hangs up when it ends."""

LayerState = Literal["waiting", "sending", "sent", "there", "retrying"]


# --- what a push reports while it runs ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LayerPush:
    """How far one layer is."""

    id: str
    state: LayerState
    """`there` is a layer that the registry had before."""
    current_bytes: int = 0
    total_bytes: int | None = None
    """Uncompressed, as the engine counts; None while it does not say."""


class PushProgress(Protocol):
    """Watches pushes, one after another."""

    def begin(self, sent_to: str) -> None:
        """See a push start."""

    def layer(self, layer: LayerPush) -> None:
        """See a layer in a new state, or further on."""

    def end(self) -> None:
        """See the push end, well or not."""


class NoProgress:
    """Shows nothing."""

    def begin(self, sent_to: str) -> None:
        """Do nothing."""

    def layer(self, layer: LayerPush) -> None:
        """Do nothing."""

    def end(self) -> None:
        """Do nothing."""


class PlainProgress:
    """A line per push and per layer that changes its state: for CI logs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._states: dict[str, LayerState] = {}

    def begin(self, sent_to: str) -> None:
        """Name the place."""
        self._states = {}
        print(f"pushing {sent_to}", file=self._stream, flush=True)

    def layer(self, layer: LayerPush) -> None:
        """Write a line if the state is new."""
        if layer.state not in ("waiting", self._states.get(layer.id)):
            print(f"  {layer.id} {layer.state}", file=self._stream, flush=True)
        self._states[layer.id] = layer.state

    def end(self) -> None:
        """Do nothing: the table that follows tells the outcome."""


class RichProgress:
    """A bar per layer, for terminals."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def begin(self, sent_to: str) -> None:
        """Name the place and draw no bar yet."""
        self._console.print(f"pushing {sent_to}", highlight=False, markup=False)
        columns = (TextColumn("  {task.description} {task.fields[state]:<8}"), BarColumn(), DownloadColumn())
        self._bars = Progress(*columns, console=self._console, transient=True)
        self._tasks = {}
        self._bars.start()

    def layer(self, layer: LayerPush) -> None:
        """Move the layer's bar."""
        if self._bars is None:
            return
        if layer.id not in self._tasks:
            self._tasks[layer.id] = self._bars.add_task(layer.id, total=None, state=layer.state)
        done = layer.total_bytes or 1 if layer.state in ("sent", "there") else layer.current_bytes
        total = layer.total_bytes or (1 if layer.state in ("sent", "there") else None)
        self._bars.update(self._tasks[layer.id], completed=done, total=total, state=layer.state)

    def end(self) -> None:
        """Take the bars away."""
        if self._bars is not None:
            self._bars.stop()
            self._bars = None


# --- what a registry is asked, and told --------------------------------------------------------------------------


def remote_digest(api: APIClient, sent_to: str, auth: Mapping[str, str] | None = None) -> str | None:
    """Return the digest that a registry holds under a tag, None when it has no such tag.

    The engine asks, with `auth` or what the docker config has for the registry; raises PublishError otherwise.
    """
    response = _ask(api, sent_to, credentials_for(sent_to) if auth is None else auth)
    if response.ok:
        return _described(response)
    words = _words(response)
    if _NO_SUCH_TAG.search(words):
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
    with _engine():
        found = _inspect(api, image_id)
    if found is None:
        return None
    digests = (name.rpartition("@")[2] for name in found.get("RepoDigests") or ())
    # In a containerd image store the id is itself the digest of a manifest; elsewhere, of no manifest at all.
    return tuple(dict.fromkeys((*digests, str(found["Id"]))))


class EngineSender:
    """Publishes what one engine holds, through that engine."""

    def __init__(self, api: APIClient) -> None:
        self._api = api

    def digests(self, image_id: str) -> tuple[str, ...] | None:
        """See `image_digests`."""
        return image_digests(self._api, image_id)

    def remote_digest(self, sent_to: str) -> str | None:
        """See `remote_digest`."""
        return remote_digest(self._api, sent_to)

    def push(self, image_id: str, sent_to: str, progress: PushProgress | None = None) -> str:
        """See `push_tag`."""
        return push_tag(self._api, image_id, sent_to, progress)


# --- the engine's answers ----------------------------------------------------------------------------------------

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


# --- what a refusal means ----------------------------------------------------------------------------------------

# Whatever is not surely "no such tag" is an error: a tag taken for absent would be overwritten. So a plain 404 is not
# enough: an engine that does not know the request says "page not found".
_NO_SUCH_TAG: Final = re.compile(
    r"manifest.unknown|name.unknown|not known to registry|\b(manifest|artifact|repository|tag)\b.* not found",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Fault:
    """A kind of refusal, known by words that engines use for it."""

    pattern: re.Pattern[str]
    says: str
    hint: str
    quoted: bool = True
    """Whether the engine's own words tell more than ours."""


def _fault(pattern: str, says: str, hint: str, *, quoted: bool = True) -> _Fault:
    return _Fault(re.compile(pattern, re.IGNORECASE), says, hint, quoted)


_NETWORK_HINT: Final = "a VPC host is reached only from inside its region's VPC: push from a machine there"
_FAULTS: Final = (  # the first that fits; words of 20.10.24 and 26.1.5, both image stores
    _fault(r"no such host|\blookup \S+", "cannot be found by name from here", _NETWORK_HINT, quoted=False),
    _fault(
        r"connection refused", "refuses the connection", "is the registry running, and is this its port?", quoted=False
    ),
    _fault(
        r"HTTP response to HTTPS client",
        "speaks plain http, which the engine does not take",
        "give the registry a certificate, or name {host} under insecure-registries of the engine",
        quoted=False,
    ),
    _fault(
        r"timeout|deadline exceeded|no route to host|network is unreachable|request canceled",
        "does not answer from here",
        _NETWORK_HINT,
        quoted=False,
    ),
    _fault(
        r"x509|tls:|certificate",
        "has a certificate that the engine does not trust",
        "put the registry's CA on the engine's machine, at /etc/docker/certs.d/{host}/ca.crt",
    ),
    _fault(
        r"no basic auth credentials|unauthorized|authentication required|incorrect username or password",
        "refuses the login",
        "run: docker login {host}",
    ),
    _fault(
        r"denied|forbidden|insufficient.scope|authorization failed",
        "does not let this account do that",
        "log in as an account that may push there: docker login {host}",
    ),
)


def explain(words: str, sent_to: str) -> PublishError:
    """Turn an engine's words about a registry into an error with a way out."""
    host = sent_to.partition("/")[0]
    for fault in _FAULTS:
        if fault.pattern.search(words):
            quote = f": {words}" if fault.quoted else ""
            return PublishError(f"{host} {fault.says}{quote}", hint=fault.hint.format(host=host))
    return PublishError(f"{host} refused {sent_to}: {words}", hint="these are the words of the registry or the engine")


# --- credentials -------------------------------------------------------------------------------------------------


def credentials_for(sent_to: str) -> dict[str, str]:
    """Return what the docker config, or a helper named in it, has for a registry; empty for an anonymous push."""
    host, _ = docker.auth.resolve_repository_name(sent_to)
    config = _docker_config()
    try:
        with warnings.catch_warnings():  # docker-py warns of an absent helper, and then raises
            warnings.simplefilter("ignore")
            found = config.resolve_authconfig(host)
    except DockerException as error:
        raise _helper_failed(config, host, error) from None
    except (ValueError, KeyError, TypeError):  # not chained: the helper's answer holds the secret
        raise PublishError(
            f"docker-credential-{config.get_credential_store(host)} gave no valid answer for {host}",
            hint=f"run: docker login {host}",
        ) from None
    return dict(found or {})


def _docker_config() -> docker.auth.AuthConfig:
    file = _config_file()
    try:
        # docker-py takes a config that it cannot read for an empty one, which would show up as a refused login.
        values = json.loads(Path(file).read_text()) if file and file.endswith(".json") else None
        return docker.auth.load_config(config_dict=values)
    except (OSError, ValueError, AttributeError, DockerException):  # not chained: such errors may quote a password
        raise PublishError(f"the docker config {file} cannot be read", hint="mend it, or run: docker login") from None


def _config_file() -> str | None:
    found = find_config_file()
    return None if found is None else os.fsdecode(found)  # type: ignore[arg-type]  # never a file descriptor


def _helper_failed(config: docker.auth.AuthConfig, host: str, error: DockerException) -> PublishError:
    cause = error.__cause__
    words = str(cause) if isinstance(cause, StoreError) else str(error)
    if "Secret" in words:  # a helper that fails after it has answered
        words = "it failed, and its words are withheld: they hold a secret"
    return PublishError(
        f"docker-credential-{config.get_credential_store(host)} has no login for {host}: {words}",
        hint=f"run: docker login {host}",
    )


# --- the engine --------------------------------------------------------------------------------------------------


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
        raise PublishError(f"{host} did not answer the engine in {ASK_S:.0f} s", hint=_NETWORK_HINT) from None


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
        image, before = _inspect(api, image_id), _inspect(api, name)
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


def _inspect(api: APIClient, name: str) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = api.inspect_image(name)  # type: ignore[no-untyped-call]
    except ImageNotFound:
        return None
    return found


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
