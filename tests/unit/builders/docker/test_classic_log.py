from __future__ import annotations

from observer import Seen

from lj_image.builders.docker.classic_log import ClassicLog
from lj_image.builders.docker.events import StepState
from lj_image.builders.docker.recorder import Recorder
from lj_image.builders.docker.steps import DockerfileSteps

DOCKERFILE = "FROM base\n# layer: one\nCOPY a /\n# layer: two\nRUN x\n"


def told(*messages: str | dict) -> tuple[Seen, ClassicLog]:
    seen = Seen()
    log = ClassicLog(DockerfileSteps(DOCKERFILE), Recorder(seen, lambda text: text))
    for message in messages:
        log.feed({"stream": message} if isinstance(message, str) else message)
    return seen, log


# as engine 20.10 sends it
GOOD = (
    "Step 1/3 : FROM base",
    "\n",
    " ---> 7c392fd9b848\n",
    "Step 2/3 : COPY a /",
    "\n",
    " ---> Using cache\n",
    " ---> 0123456789ab\n",
    "Step 3/3 : RUN x",
    "\n",
    " ---> Running in 9a0c3b1d2e3f\n",
    "out\n",
    "\x1b[91merr\n\x1b[0m",
    "Removing intermediate container 9a0c3b1d2e3f\n",
    " ---> Removed intermediate container 9a0c3b1d2e3f\n",  # 26.1
    " ---> 0011223344aa\n",
)


def test_steps_are_planned_run_and_done() -> None:
    seen, log = told(*GOOD)
    log.end(StepState.DONE)
    assert seen.states("one") == ["planned", "running", "cached"]
    assert seen.states("two") == ["planned", "running", "done"]
    assert seen.steps[-1].seconds is not None


def test_only_what_the_command_wrote_is_its_log() -> None:
    seen, _ = told(*GOOD)
    assert [(line.text, line.stream) for line in seen.lines] == [("out", "stdout"), ("err", "stderr")]
    assert {line.step.title for line in seen.lines if line.step} == {"two"}


def test_a_failing_step_is_the_one_that_ran_last() -> None:
    seen, log = told(*GOOD[:11])
    log.end(StepState.FAILED)
    assert seen.states("two")[-1] == "failed"
    assert log.step is not None
    assert (log.step.line, log.step.layer) == (5, "two")


def test_pulls_are_progress_of_the_step_that_pulls() -> None:
    detail = {"current": 5, "total": 10}
    seen, _ = told("Step 1/3 : FROM base\n", {"status": "Downloading", "id": "abc", "progressDetail": detail})
    (transfer,) = seen.transfers
    assert (transfer.name, transfer.current_bytes, transfer.total_bytes) == ("Downloading abc", 5, 10)


def test_a_step_that_the_engine_adds_has_no_layer() -> None:
    seen, _ = told("Step 1/4 : FROM base\n", "Step 4/4 : LABEL a=b\n")
    assert (seen.steps[-1].name, seen.steps[-1].layer) == ("Step 4/4 : LABEL a=b", None)
