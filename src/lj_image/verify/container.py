"""A container of an image that does nothing but answer: no network, no entrypoint, gone afterwards whatever happens."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import docker.errors
import docker.types
from docker import APIClient

from lj_image.errors import EngineError, LjImageError, VerificationError
from lj_image.verify.channel import DEFAULT_TIMEOUT_S, Channel, ChannelError, open_channel
from lj_image.verify.engine import engine_errors, has_gpu, inspect_image
from lj_image.verify.frames import Output
from lj_image.verify.owner import is_gone, owner_of_this_process

LABEL: Final = "io.lj-image.verify"
"""Marks our containers, so that what a killed run leaves behind can be found: docker ps -a --filter label=…"""
OWNER: Final = "io.lj-image.verify.owner"
"""Names the process that uses the container."""
LIFETIME_S: Final = 3600
"""A container that nobody removes (the tool was killed) ends by itself."""
_SLEEP: Final = f"trap 'exit 0' TERM INT; sleep {LIFETIME_S} & wait $!"


class RunningContainer:
    """A started container, with one channel into it that is opened again when a command has broken it."""

    def __init__(self, api: APIClient, name: str, *, gpu: bool) -> None:
        self.name = name
        self.gpu = gpu
        """Whether a GPU was given to it."""
        self._api = api
        self._channel: Channel | None = None

    def run(self, command: str | bytes, *, stdin: str | None = None, timeout_s: float = DEFAULT_TIMEOUT_S) -> Output:
        """Run a shell command inside; raises ChannelError when it ends the shell or does not end itself."""
        if self._channel is None or self._channel.closed:
            self._channel = self._open()
        return self._channel.run(command, stdin=stdin, timeout_s=timeout_s)

    def _open(self) -> Channel:
        try:
            return open_channel(self._api, self.name)
        except EngineError:
            if not _state(self._api, self.name).get("Running"):
                raise ChannelError(
                    "the container has stopped", hint="a command before this one ended its first process"
                ) from None
            raise

    def close(self) -> None:
        """Close the channel; the container itself belongs to `running`."""
        if self._channel is not None:
            self._channel.close()


@contextmanager
def running(api: APIClient, image: str, *, gpu: bool = False) -> Iterator[RunningContainer]:
    """Start a container of an image, and remove it at the end, also after an error or Ctrl-C.

    With `gpu` it gets the engine's GPUs, if the engine has any. Raises VerificationError, with what to do, when the
    image cannot run a shell here.
    """
    _remove_abandoned(api)
    name = f"lj-image-verify-{secrets.token_hex(6)}"
    container: RunningContainer | None = None
    try:
        container = _start(api, image, name, gpu=gpu and has_gpu(api))
        _await_shell(api, image, container)
        yield container
    finally:
        if container is not None:
            container.close()
        _remove(api, name)


def _start(api: APIClient, image: str, name: str, *, gpu: bool) -> RunningContainer:
    wishes: dict[str, Any] = {"network_mode": "none"}
    if gpu:
        wishes["device_requests"] = [docker.types.DeviceRequest(count=-1, capabilities=[["gpu"]])]
    with engine_errors(f"creating a container of {image}"):
        api.create_container(
            image,
            command=["-c", _SLEEP],
            entrypoint=["sh"],
            name=name,
            user="0:0",  # to read every file; the image's tests may drop rights themselves
            labels={LABEL: "container", OWNER: owner_of_this_process() or ""},
            host_config=api.create_host_config(**wishes),
            healthcheck={"test": ["NONE"]},
        )
    try:
        api.start(name)
    except docker.errors.APIError as error:
        if gpu:  # a runtime named nvidia without a working driver behind it
            _remove(api, name)
            return _start(api, image, name, gpu=False)
        raise VerificationError(
            f"a container of {image} does not start: {error.explanation or error}", hint=_way_out(api, image)
        ) from None
    return RunningContainer(api, name, gpu=gpu)


def _await_shell(api: APIClient, image: str, container: RunningContainer) -> None:
    try:
        if container.run("echo ready").text == "ready\n":
            return
        reason = "its shell does not answer"
    except ChannelError as error:
        reason = error.message
    with suppress(docker.errors.APIError):
        reason = api.logs(container.name).decode(errors="replace").strip() or reason
    raise VerificationError(f"a container of {image} ends at once: {reason}", hint=_way_out(api, image))


def _way_out(api: APIClient, image: str) -> str:
    """Say what most likely keeps an image from starting: another processor, or no shell."""
    with suppress(LjImageError, docker.errors.APIError):
        made_for = str(inspect_image(api, image, hint="").get("Architecture"))
        here = str(api.version().get("Arch"))
        if made_for != here:
            return f"the image is for {made_for}, the engine runs on {here}: verify it on a machine of that kind"
    return f"verification needs `sh` and `sleep` in the image; try: docker run --rm --entrypoint sh {image} -c true"


def _state(api: APIClient, name: str) -> dict[str, Any]:
    with suppress(docker.errors.APIError):
        return dict(api.inspect_container(name)["State"])
    return {}


def _remove(api: APIClient, name: str) -> None:
    """Remove a container that may never have come to be."""
    try:
        with engine_errors(f"removing the container {name}"):
            api.remove_container(name, force=True, v=True)
    except EngineError as error:
        if not isinstance(error.__cause__, docker.errors.NotFound):
            raise


def _remove_abandoned(api: APIClient) -> None:
    """Remove what killed runs have left: what was theirs, and what ended and is older than any run of ours."""
    with engine_errors("listing containers"):
        ours = api.containers(all=True, filters={"label": LABEL})
    for container in ours:
        has_ended = container.get("State") == "exited" and time.time() - float(container["Created"]) > LIFETIME_S
        if has_ended or is_gone((container.get("Labels") or {}).get(OWNER, "")):
            with suppress(docker.errors.APIError):
                api.remove_container(container["Id"], force=True, v=True)
