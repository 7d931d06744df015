"""Builds an image with the engine's BuildKit: one HTTP request, and the session that it calls back into."""

from __future__ import annotations

import base64
import secrets as random
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Final

import docker
import requests

from lj_image.builders.docker.answer import Answer, image_id_of
from lj_image.builders.docker.cancellation import Cancellation
from lj_image.builders.docker.engine import WIRE_ERRORS, refusal, translated
from lj_image.builders.docker.events import Observer
from lj_image.builders.docker.failures import build_failure
from lj_image.builders.docker.recorder import Recorder
from lj_image.builders.docker.redact import redact
from lj_image.builders.docker.request import BuildRequest
from lj_image.builders.docker.session import transport
from lj_image.builders.docker.session.session import Session
from lj_image.builders.docker.steps import DockerfileSteps
from lj_image.builders.docker.trace import Trace
from lj_image.builders.docker.tree import context_tree, dockerfile_tree
from lj_image.errors import BuildError, EngineError, Interrupted

# moby: builder/builder-next/builder.go, api/server/backend/build
TRACE: Final = "moby.buildkit.trace"
IMAGE: Final = "moby.image.id"

CANCEL_TRIES: Final = 4
CANCEL_WAIT_S: Final = 0.5  # an engine ends a cancelled build within 50 ms; it may not have begun when asked first


def build(
    api: docker.APIClient, request: BuildRequest, observer: Observer, cancellation: Cancellation | None = None
) -> str:
    """Build an image and return its id (`sha256:…`).

    Raises StepFailed or BuildError when the build fails, EngineError when the engine is out of reach or goes away,
    Interrupted on Ctrl-C or when `cancellation` asks for it; nothing runs on then, on either side.
    """
    return _Build(api, request, observer).run(cancellation or Cancellation())


class _Build:
    def __init__(self, api: docker.APIClient, request: BuildRequest, observer: Observer) -> None:
        self._api = api
        self._request = request
        self._id = random.token_hex(16)
        self._dockerfile = DockerfileSteps(request.context.dockerfile)
        self._redact = partial(redact, redactions=request.redact)
        self._recorder = Recorder(observer, self._redact)
        self._trace = Trace(self._dockerfile, self._recorder)
        self._answer: Answer | None = None
        self._ended = threading.Event()

    def run(self, cancellation: Cancellation) -> str:
        context = self._request.context
        trees = {"dockerfile": dockerfile_tree(context), "context": context_tree(context)}
        session = Session(self._api, trees, self._request.secrets, name=self._request.name)
        with cancellation.stops_by(self._stop), session:
            return self._run(session, cancellation)

    def _run(self, session: Session, cancellation: Cancellation) -> str:
        try:
            answer = self._follow(session, cancellation)
        except KeyboardInterrupt:
            self._cancel()
            raise Interrupted("the build was stopped") from None
        except EngineError:
            cancellation.check()  # then it is we who have cut the connection
            raise
        finally:
            self._close()
        cancellation.check()
        return self._image(answer, session)

    def _follow(self, session: Session, cancellation: Cancellation) -> dict[str, Any]:
        """Start the build, report what happens, and return the engine's last word."""
        answer: dict[str, Any] = {}
        response = self._post(session)
        if refused := refusal(response):
            raise build_failure(self._redact(refused), self._dockerfile, None)
        self._answer = Answer(response)
        cancellation.check()
        for message in self._answer.objects():
            if message.get("id") == TRACE:
                self._trace.feed(base64.b64decode(message["aux"]))
            elif message.get("id") == IMAGE or "error" in message:
                answer = message
        self._trace.flush()
        return answer

    def _post(self, session: Session) -> requests.Response:
        with translated("the engine does not take the build"):
            return self._api.post(
                transport.engine_url(self._api, "/build"),
                params=list(self._parameters(session.id)),
                headers={"Content-Type": "application/x-tar"},
                stream=True,
                timeout=None,
            )

    def _parameters(self, session_id: str) -> Iterator[tuple[str, str]]:
        yield from (("version", "2"), ("session", session_id), ("buildid", self._id), ("remote", "client-session"))
        yield from self._request.parameters()

    def _image(self, answer: dict[str, Any], session: Session) -> str:
        if session.failure:
            raise BuildError(session.failure, hint="the file changed while it was in use; run the build again")
        if "error" in answer:
            message = self._redact(str(answer["error"]))
            step = self._trace.failed_step(str(answer["error"]))
            raise build_failure(message, self._dockerfile, step, self._recorder.tail(step.id) if step else ())
        return image_id_of(answer)

    # the end

    def _stop(self) -> None:
        """Stop the build from another thread: politely, then by cutting its connection."""
        for _ in range(CANCEL_TRIES):
            self._cancel()
            if self._ended.wait(CANCEL_WAIT_S):
                return
        if self._answer:
            self._answer.disconnect()

    def _cancel(self) -> None:
        with suppress(*WIRE_ERRORS):  # an engine that is gone has stopped the build as well
            transport.request(self._api, f"/build/cancel?id={self._id}", timeout_s=CANCEL_WAIT_S).close()

    def _close(self) -> None:
        self._ended.set()
        if self._answer:
            self._answer.close()
