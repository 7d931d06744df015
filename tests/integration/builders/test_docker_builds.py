"""Both builders against the engine of DOCKER_HOST."""

from __future__ import annotations

import secrets
import signal
import threading
import time
from types import ModuleType

import docker
import pytest
from watching import Seen, eventually, processes

from lj_image.builders.docker import buildkit, classic
from lj_image.builders.docker import engine as engines
from lj_image.builders.docker.cancellation import Cancellation
from lj_image.builders.docker.events import StepState
from lj_image.builders.docker.failures import StepFailed
from lj_image.builders.docker.request import BuildRequest
from lj_image.context import BuildContext, ContextFile
from lj_image.errors import BuildError, Interrupted, Location

pytestmark = pytest.mark.engine

both = pytest.mark.parametrize("builder", [buildkit, classic], ids=["buildkit", "classic"])


def request_for(dockerfile: str, tag: str, *files: ContextFile, **fields: object) -> BuildRequest:
    return BuildRequest(BuildContext(dockerfile, files), tags=(tag,), network="none", **fields)  # type: ignore[arg-type]


@both
def test_a_build_gives_an_image_and_the_second_one_only_cached_steps(
    api: docker.APIClient, tiny_base: str, tag: str, builder: ModuleType
) -> None:
    dockerfile = f"FROM {tiny_base}\n# layer: files\nCOPY a d/ /x/\n# layer: made\nRUN cat /x/a && echo {tag} >/y\n"
    request = request_for(
        dockerfile, tag, ContextFile("a", b"hello\n", 0o755), ContextFile("d/b", b"b"), labels={"k": "v"}
    )
    first, second = Seen(), Seen()
    image = builder.build(api, request, first)
    assert "hello" in first.texts()
    assert (first.last("made").state, first.last("made").line) == (StepState.DONE, 5)
    assert builder.build(api, request, second) == image
    assert {second.last(layer).state for layer in ("files", "made")} == {StepState.CACHED}
    found = api.inspect_image(tag)
    assert found["Id"] == image
    assert found["Config"]["Labels"]["k"] == "v"


@both
def test_a_file_that_changes_but_keeps_its_size_is_sent_again(
    api: docker.APIClient, tiny_base: str, tag: str, builder: ModuleType
) -> None:
    shown = []
    for content in (b"one\n", b"two\n"):
        seen = Seen()
        dockerfile = f"FROM {tiny_base}\nCOPY a /a\nRUN cat /a && echo {tag} >/y\n"
        builder.build(api, request_for(dockerfile, tag, ContextFile("a", content)), seen)
        shown += [text for text in seen.texts() if text in ("one", "two")]
    assert shown == ["one", "two"]


@both
def test_dockerignore_keeps_files_out(api: docker.APIClient, tiny_base: str, tag: str, builder: ModuleType) -> None:
    dockerfile = f"FROM {tiny_base}\nCOPY . /x/\nRUN echo /x/* /x/d/* && echo {tag} >/y\n"
    files = [ContextFile(path, b"x") for path in ("a", "b", "d/a", "d/b")]
    seen = Seen()
    ignore = ContextFile(".dockerignore", b"# no b, but one\n**/b\n!d/b\n.dockerignore\nDockerfile\n")
    builder.build(api, request_for(dockerfile, tag, *files, ignore), seen)
    assert "/x/a /x/d /x/d/a /x/d/b" in seen.texts()


STAGES = """\
FROM {base} AS tools
WORKDIR /w
# layer: tool
RUN echo tool >/w/tool

FROM scratch
# layer: from nothing
COPY a /a

FROM {base}
ENV A=b
# layer: carried over
# component: one, two
COPY --from=tools /w/tool /
# layer: from the other
COPY --from=1 /a /
# layer: last
RUN cat \\
    /a
"""


@both
def test_steps_lead_to_layers_and_lines_in_every_stage(
    api: docker.APIClient, tiny_base: str, tag: str, builder: ModuleType
) -> None:
    seen = Seen()
    dockerfile = STAGES.format(base=tiny_base)
    builder.build(api, request_for(dockerfile, tag, ContextFile("a", tag.encode())), seen)
    found = {
        step.layer: (step.line, step.name.rsplit("] ", 1)[-1].split(" : ")[-1]) for step in seen.steps if step.layer
    }
    assert found == {
        "tool": (4, "RUN echo tool >/w/tool"),
        "from nothing": (8, "COPY a /a"),
        "carried over": (14, "COPY --from=tools /w/tool /"),
        "from the other": (16, "COPY --from=1 /a /"),
        "last": (18, found["last"][1]),
    }
    assert found["last"][1].startswith("RUN cat")
    assert seen.last("carried over").components == ("one", "two")
    lines = {step.line for step in seen.steps if step.state in (StepState.DONE, StepState.CACHED)}
    assert {4, 8, 14, 16, 18} <= lines
    assert lines & {1, 10}, "one base in two stages is one step of BuildKit, named after either"


def test_a_secret_reaches_its_step_and_is_masked_wherever_it_shows(
    api: docker.APIClient, tiny_base: str, tag: str
) -> None:
    dockerfile = (
        f"FROM {tiny_base}\n# layer: login\n"
        "RUN --mount=type=secret,id=tok,required=true "
        f"cat /run/secrets/tok; echo; base64 /run/secrets/tok; cat /run/secrets/tok >&2; echo {tag}; exit 3\n"
    )
    value = secrets.token_urlsafe(12)
    seen = Seen()
    with pytest.raises(StepFailed) as caught:
        buildkit.build(api, request_for(dockerfile, tag, secrets={"tok": value.encode()}), seen)
    shown = "\n".join((repr(seen.steps), *seen.texts(), *caught.value.lines(), repr(caught.value.log)))
    assert value not in shown
    assert seen.texts().count("***") == 3, "as it is, in base64, and on the other stream"


def test_a_secret_that_nobody_gave_is_named(api: docker.APIClient, tiny_base: str, tag: str) -> None:
    dockerfile = f"FROM {tiny_base}\n# layer: login\nRUN --mount=type=secret,id=tok,required=true echo {tag}\n"
    with pytest.raises(StepFailed, match=r"layer login failed.*secret tok"):
        buildkit.build(api, request_for(dockerfile, tag), Seen())


@both
def test_a_failing_command_is_told_with_line_code_and_last_words(
    api: docker.APIClient, tiny_base: str, tag: str, builder: ModuleType
) -> None:
    dockerfile = f"FROM {tiny_base}\n\n# layer: numpy\n# component: transformers\nRUN seq 1 30; echo {tag}; exit 7\n"
    seen = Seen()
    with pytest.raises(StepFailed) as caught:
        builder.build(api, request_for(dockerfile, tag), seen)
    error = caught.value
    assert error.message == "layer numpy failed (transformers): exit code 7"
    assert error.location == Location("Dockerfile", 5)
    assert error.exit_code_of_step == 7
    assert error.log == (*map(str, range(12, 31)), tag)
    assert seen.last("numpy").state is StepState.FAILED
    assert error.step == seen.last("numpy")


@both
def test_a_dockerfile_that_cannot_be_read_is_told_with_its_line(
    api: docker.APIClient, tiny_base: str, tag: str, builder: ModuleType
) -> None:
    with pytest.raises(BuildError, match=r"unknown instruction: COPPY|Unknown instruction: \"?COPPY") as caught:
        builder.build(api, request_for(f"FROM {tiny_base}\nCOPPY a /\n", tag), Seen())
    assert caught.value.location == Location("Dockerfile", 2)


@both
def test_a_source_that_is_not_in_the_context_is_named(
    api: docker.APIClient, tiny_base: str, tag: str, builder: ModuleType
) -> None:
    with pytest.raises(BuildError, match="nope"):
        builder.build(api, request_for(f"FROM {tiny_base}\nCOPY nope /\n", tag), Seen())


class Sleeper:
    """A build whose RUN sleeps for a number of seconds that no other process sleeps."""

    def __init__(self, base: str) -> None:
        self.seconds = f"600.{secrets.randbelow(10**9):09}"
        self.dockerfile = f"FROM {base}\n# layer: sleep\nRUN echo asleep && sleep {self.seconds}\n"
        self.seen = Seen()

    def runs(self) -> bool:
        return bool(processes(self.seconds))


@both
@pytest.mark.parametrize("way", ["another thread", "Ctrl-C"])
def test_a_build_that_is_stopped_leaves_nothing_behind(
    api: docker.APIClient, tiny_base: str, tag: str, builder: ModuleType, way: str
) -> None:
    sleeper, cancellation, threads = Sleeper(tiny_base), Cancellation(), threading.active_count()
    started: list[bool] = []
    stopped: list[float] = []

    def stop() -> None:
        started.append(sleeper.seen.wait_for("asleep") and eventually(sleeper.runs))
        stopped.append(time.monotonic())
        if way == "another thread":
            cancellation.cancel()
        else:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    stopper = threading.Thread(target=stop)
    stopper.start()
    with pytest.raises(Interrupted):
        builder.build(api, request_for(sleeper.dockerfile, tag), sleeper.seen, cancellation)
    assert time.monotonic() - stopped[0] < 5
    assert started == [True]
    stopper.join(5)
    assert eventually(lambda: not sleeper.runs(), 10)
    assert threading.active_count() == threads
    assert eventually(lambda: not api.containers(all=True, filters={"ancestor": tiny_base}), 10)
    assert not api.images(tag)


def test_a_build_stopped_while_files_are_sent_ends_at_once(
    api: docker.APIClient, tiny_base: str, tag: str, tmp_path: object
) -> None:
    files = [ContextFile(f"d{n % 100}/f{n}", b"%d" % n) for n in range(20000)]
    cancellation, threads = Cancellation(), threading.active_count()
    timer = threading.Timer(0.3, cancellation.cancel)
    timer.start()
    began = time.monotonic()
    with pytest.raises(Interrupted):
        buildkit.build(api, request_for(f"FROM {tiny_base}\nCOPY . /x\n", tag, *files), Seen(), cancellation)
    timer.join()
    assert time.monotonic() - began < 8
    assert eventually(lambda: threading.active_count() == threads)


def test_the_classic_builder_says_what_needs_buildkit(api: docker.APIClient, tag: str) -> None:
    mounts = "FROM x\n# layer: pip\nRUN --mount=type=cache,target=/c true\n"
    with pytest.raises(BuildError, match="pip uses one") as caught:
        classic.build(api, request_for(mounts, tag), Seen())
    assert caught.value.location == Location("Dockerfile", 3)
    with pytest.raises(BuildError, match="tok"):
        classic.build(api, request_for("FROM x\n", tag, secrets={"tok": b"value"}), Seen())


def test_the_engine_is_known_to_have_buildkit(api: docker.APIClient) -> None:
    assert engines.supports_buildkit(api)
    free = engines.free_bytes(api)
    assert free is None or free > 0


@both
def test_an_engine_may_say_nothing_for_longer_than_the_clients_timeout(
    api: docker.APIClient, tiny_base: str, tag: str, builder: ModuleType
) -> None:
    dockerfile = f"FROM {tiny_base}\nRUN sleep 2.5 && echo {tag} >/y\n"
    with docker.APIClient(engines.host(), version=api.api_version, timeout=1) as impatient:
        assert builder.build(impatient, request_for(dockerfile, tag), Seen())


@both
def test_an_observer_that_fails_stops_the_build_with_its_own_error(
    api: docker.APIClient, tiny_base: str, tag: str, builder: ModuleType
) -> None:
    class Broken(Seen):
        def log_line(self, line: object) -> None:
            raise BrokenPipeError("stderr is closed")

    sleeper, threads = Sleeper(tiny_base), threading.active_count()
    with pytest.raises(BrokenPipeError):
        builder.build(api, request_for(sleeper.dockerfile, tag), Broken())
    assert eventually(lambda: not sleeper.runs(), 10)
    assert threading.active_count() == threads
    assert eventually(lambda: not api.containers(all=True, filters={"ancestor": tiny_base}), 10)
