"""A container of an image with a person, or a script, at its input; it is removed whatever happens.

`docker run --rm -it`, without that program: attach and wait before the start, so that nothing is missed.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import docker
import docker.errors
import docker.types
import requests

from lj_image.builders.docker.engine import engine_error, find_image, translated
from lj_image.builders.docker.relay import Relay, Streams
from lj_image.builders.docker.session.transport import engine_url
from lj_image.builders.docker.terminal import ending_signals, raw, size_changes, terminal_size, undisturbed
from lj_image.catalog.release import RunFlags
from lj_image.errors import EngineError, UsageError
from lj_image.verify.engine import has_gpu

LABEL: Final = "io.lj-image.shell"
"""Marks our containers: docker ps -a --filter label=…"""
CONNECT_S: Final = 30.0
A_SHELL: Final = ("sh", "-c", "exec $(command -v bash || command -v sh)")
_NO_DETACHING: Final = "ctrl-],ctrl-^,ctrl-],ctrl-^"
"""The engine holds back a Ctrl-P until it sees that no Ctrl-Q follows; this is a sequence that nobody types."""
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder or file of this machine that the container sees."""

    source: str
    target: str
    read_only: bool = False

    @classmethod
    def parse(cls, text: str) -> Mount:
        """Read `HOST:CONTAINER[:ro]`; raises UsageError for anything else."""
        path, _, mode = text.rpartition(":")
        if mode not in ("ro", "rw"):
            path, mode = text, "rw"
        source, colon, target = path.rpartition(":")
        if not (colon and source and target.startswith("/")):
            raise UsageError(f"--mount {text}: not HOST:CONTAINER[:ro]", hint="for example --mount ./models:/models:ro")
        return cls(str(Path(source).expanduser().absolute()), target, mode == "ro")


@dataclass(frozen=True, slots=True)
class Request:
    """What to run, and how."""

    image: str
    command: tuple[str, ...] = ()
    """Empty for a shell."""
    flags: RunFlags = field(default_factory=RunFlags)
    mounts: tuple[Mount, ...] = ()
    gpus: str = "auto"
    """`auto`: all where the engine has the runtime for it; `all`, a number, or `none`."""


def run_shell(
    api: docker.APIClient, request: Request, *, terminal: bool, say: Say, streams: Streams | None = None
) -> int:
    """Run a command in a container and return its exit code; raises EngineError when it cannot be started.

    With `terminal`, our standard input must be one.
    """
    streams = streams or Streams()
    if not terminal and api.base_url.startswith("https://"):  # Python's TLS cannot close one direction alone
        say("over TLS the end of an input cannot be passed on: the command gets none")
        streams = replace(streams, stdin=None)
    _require(api, request.image)
    name = f"lj-image-shell-{secrets.token_hex(6)}"
    with ending_signals():
        try:
            sock, waiting = _started(api, _Start(request, name, terminal, streams.stdin is not None), say)
            if terminal:
                _with_terminal(api, name, streams, sock)
            else:
                Relay(sock, streams, framed=True).run()
            return _exit_code(waiting)
        finally:
            with undisturbed():
                _remove(api, name)


def _with_terminal(api: docker.APIClient, name: str, streams: Streams, sock: Any) -> None:
    """Let the container have the terminal until it ends."""

    keyboard = streams.stdin if streams.stdin is not None else 0

    def resize() -> None:
        if (size := terminal_size(keyboard)) is not None:
            with suppress(docker.errors.APIError, requests.RequestException):  # it may have ended just now
                api.resize(name, *size)

    with size_changes() as changes, raw(keyboard):
        resize()
        Relay(sock, streams, framed=False).run(changes, resize)


def _require(api: docker.APIClient, image: str) -> None:
    if find_image(api, image) is None:
        raise EngineError(
            f"the engine no longer has the image {image[:19]}", hint="build it again: lj-image build RELEASE"
        )


@dataclass(frozen=True, slots=True)
class _Start:
    """How the one container of a run is made."""

    request: Request
    name: str
    terminal: bool
    has_input: bool


def _started(api: docker.APIClient, start: _Start, say: Say) -> tuple[Any, requests.Response]:
    """Create, attach to and start a container; without GPUs when the engine cannot give those that it promised."""
    what = f"the container of {start.request.image[:19]} does not start"
    gpus = _gpus(api, start.request.gpus)
    try:
        return _start(api, start, gpus)
    except docker.errors.APIError as error:
        if not (gpus and start.request.gpus == "auto"):
            raise engine_error(error, what) from None
        say(f"without GPUs: {error.explanation or error}")
    _remove(api, start.name)
    with translated(what):
        return _start(api, start, ())


def _start(api: docker.APIClient, start: _Start, gpus: Iterable[Any]) -> tuple[Any, requests.Response]:
    request = start.request
    host_config = api.create_host_config(
        auto_remove=True,  # also when we are killed: its input ends then, and with it a shell
        mounts=[docker.types.Mount(item.target, item.source, "bind", item.read_only) for item in request.mounts],
        device_requests=list(gpus),
        **_host_options(request.flags),
    )
    api.create_container(
        request.image,
        list(request.command or A_SHELL),
        name=start.name,
        tty=start.terminal,
        stdin_open=start.has_input,
        environment={"TERM": os.environ.get("TERM", "xterm")} if start.terminal else {},
        labels={LABEL: "container"},
        host_config=host_config,
        healthcheck={"test": ["NONE"]},
    )
    ways = {"stdin": int(start.has_input), "stdout": 1, "stderr": 1, "stream": 1, "detachKeys": _NO_DETACHING}
    answer: Any = api.attach_socket(start.name, params=ways)
    waiting = api.post(
        engine_url(api, f"/containers/{start.name}/wait"),
        params={"condition": "next-exit"},
        stream=True,
        timeout=(CONNECT_S, None),
    )
    api.start(start.name)
    # Over a unix socket and TCP docker-py gives a read-only SocketIO around the socket; over TLS the socket itself.
    return getattr(answer, "_sock", answer), waiting


def _host_options(flags: RunFlags) -> dict[str, Any]:
    """Return run flags as docker-py names them; what is not said is the engine's default."""
    named = {"ipc_mode": flags.ipc, "network_mode": flags.network, "shm_size": flags.shm_size}
    return {key: value for key, value in named.items() if value} | ({"privileged": True} if flags.privileged else {})


def _gpus(api: docker.APIClient, wanted: str) -> tuple[Any, ...]:
    """Return what to ask for GPUs with; raises UsageError for a wrong word, EngineError where there are none."""
    if wanted == "none":
        return ()
    if wanted not in ("auto", "all") and not wanted.isdigit():
        raise UsageError(f"--gpus {wanted}: not auto, all, none or a number", hint="for example --gpus 2")
    if not has_gpu(api):
        if wanted == "auto":
            return ()
        raise EngineError("the engine has no runtime named nvidia", hint="install nvidia-container-toolkit")
    count = int(wanted) if wanted.isdigit() else -1
    return (docker.types.DeviceRequest(count=count, capabilities=[["gpu"]]),)


def _exit_code(waiting: requests.Response) -> int:
    with translated("the container ended, and how is not known:"):
        try:
            answer = waiting.json()
        except ValueError:
            raise EngineError("the engine went away while the container ran", hint="see the engine's own log") from None
    if (error := (answer.get("Error") or {}).get("Message")) is not None:
        raise EngineError(f"the container failed: {error}")
    return int(answer["StatusCode"])


def _remove(api: docker.APIClient, name: str) -> None:
    """Remove a container that may be gone, or just going."""
    try:
        api.remove_container(name, force=True, v=True)
    except docker.errors.NotFound:
        return
    except docker.errors.APIError as error:
        if error.response is None or error.response.status_code != requests.codes.conflict:
            raise engine_error(error, f"removing the container {name}") from None
    except requests.RequestException as error:
        raise engine_error(error, f"removing the container {name}") from None
