"""Builds an image with the engine's classic builder: the context as a tar, no session, no mounts in RUN."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import docker
import docker.auth
import requests
from docker.errors import DockerException

from lj_image.builders.docker.answer import Answer, image_id_of
from lj_image.builders.docker.cancellation import Cancellation
from lj_image.builders.docker.classic_log import ClassicLog
from lj_image.builders.docker.engine import refusal, translated
from lj_image.builders.docker.events import Observer, StepState
from lj_image.builders.docker.failures import DOCKERFILE, build_failure
from lj_image.builders.docker.recorder import Recorder
from lj_image.builders.docker.redact import redact
from lj_image.builders.docker.request import BuildRequest
from lj_image.builders.docker.session import transport
from lj_image.builders.docker.session.ignore import PathPatterns
from lj_image.builders.docker.steps import DockerfileSteps
from lj_image.builders.docker.tar_stream import tar_chunks
from lj_image.builders.docker.tree import Entry, Tree, context_tree, source_date_epoch
from lj_image.errors import BuildError, EngineError, Interrupted, Location

WAY_OUT = "build with --builder docker, on an engine that has BuildKit"


def build(
    api: docker.APIClient, request: BuildRequest, observer: Observer, cancellation: Cancellation | None = None
) -> str:
    """Build an image and return its id (`sha256:…`).

    Raises BuildError at once when the build needs BuildKit, StepFailed or BuildError when it fails, EngineError when
    the engine is out of reach or goes away, Interrupted on Ctrl-C or when `cancellation` asks for it; the engine then
    removes the step's container.
    """
    return _Build(api, request, observer).run(cancellation or Cancellation())


class _Build:
    def __init__(self, api: docker.APIClient, request: BuildRequest, observer: Observer) -> None:
        self._api = api
        self._request = request
        self._dockerfile = DockerfileSteps(request.context.dockerfile)
        self._redact = partial(redact, redactions=request.redact)
        self._recorder = Recorder(observer, self._redact)
        self._log = ClassicLog(self._dockerfile, self._recorder)
        self._answer: Answer | None = None

    def run(self, cancellation: Cancellation) -> str:
        self._refuse_what_needs_buildkit()
        with cancellation.stops_by(self._disconnect):
            try:
                answer = self._follow(cancellation)
            except KeyboardInterrupt:
                raise Interrupted("the build was stopped") from None
            except EngineError:
                cancellation.check()  # then it is we who have cut the connection
                raise
            finally:
                self._close()
            cancellation.check()
        return self._image(answer)

    def _refuse_what_needs_buildkit(self) -> None:
        for instruction in self._dockerfile.instructions:
            if "--mount=" in instruction.text:
                raise BuildError(
                    f"the classic builder knows no mounts, and {instruction.layer or instruction.keyword} uses one",
                    hint=WAY_OUT,
                    location=Location(DOCKERFILE, instruction.line),
                )
        if self._request.secrets:
            names = ", ".join(self._request.secrets)
            raise BuildError(f"the classic builder cannot keep secrets out of the image: {names}", hint=WAY_OUT)

    def _follow(self, cancellation: Cancellation) -> dict[str, Any]:
        """Send the context, report what happens, and return the engine's last word."""
        answer: dict[str, Any] = {}
        response = self._post(cancellation)
        if refused := refusal(response):
            raise build_failure(self._redact(refused), self._dockerfile, None)
        self._answer = Answer(response)
        cancellation.check()
        for message in self._answer.objects():
            self._log.feed(message)
            if "error" in message or "ID" in (message.get("aux") or {}):
                answer = message
        self._log.end(StepState.FAILED if "error" in answer or not answer else StepState.DONE)
        return answer

    def _post(self, cancellation: Cancellation) -> requests.Response:
        parameters = (("version", "1"), ("rm", "1"), ("forcerm", "1"), *self._request.parameters())
        headers = {"Content-Type": "application/x-tar", "X-Registry-Config": _registry_logins()}
        with translated("the engine does not take the build"):
            return self._api.post(
                transport.engine_url(self._api, "/build"),
                params=parameters,
                headers=headers,
                data=self._tar(cancellation),
                stream=True,
                timeout=None,
            )

    def _tar(self, cancellation: Cancellation) -> Iterator[bytes]:
        entries = without_ignored(context_tree(self._request.context))
        for chunk in tar_chunks(entries, source_date_epoch()):
            cancellation.check()
            yield chunk

    def _image(self, answer: dict[str, Any]) -> str:
        if "error" in answer:
            step = self._log.step
            log = self._recorder.tail(step.id) if step else ()
            raise build_failure(self._redact(str(answer["error"])), self._dockerfile, step, log)
        return image_id_of(answer)

    def _disconnect(self) -> None:
        if self._answer:
            self._answer.disconnect()

    def _close(self) -> None:
        if self._answer:
            self._answer.close()


def without_ignored(entries: Tree) -> Iterator[Entry]:
    """Yield what the context's .dockerignore leaves; the classic builder expects its client to apply it."""
    ignore = next((entry for entry in entries if entry.path == ".dockerignore"), None)
    lines = b"".join(ignore.chunks(64 * 1024)).decode().splitlines() if ignore else ()
    patterns = PathPatterns(line for line in lines if not line.startswith("#"))
    for entry in entries:
        if entry.path in (".dockerignore", DOCKERFILE) or not patterns.cover(entry.path):
            yield entry


def _registry_logins() -> str:
    """Return all logins of the docker config, as the header that the classic builder pulls its bases with."""
    try:
        config: Any = docker.auth.load_config()
        logins = config.get_all_credentials()
    except DockerException as error:
        raise EngineError(f"cannot read the logins of the docker config: {error}") from error
    return docker.auth.encode_header(logins).decode()
