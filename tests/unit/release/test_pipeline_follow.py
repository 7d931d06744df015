"""The loop over steps, and what is kept of them; tests/integration/e2e/test_release_pipeline.py has the real steps."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from lj_image.errors import BuildError, PartlyPublishedError
from lj_image.release.pipeline.follow import follow
from lj_image.release.pipeline.state import States
from lj_image.release.pipeline.step import Done, Kept, Step, StepName, StepReport


class Run:
    """Steps that only count how often they are taken, with a state on disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.taken: list[str] = []
        self.said: list[str] = []
        self.reports: list[StepReport] = []

    def step(self, name: StepName, inputs: str = "a", *, holds: bool = True, done: Done | BaseException) -> Step:
        def act() -> Done:
            self.taken.append(name)
            if isinstance(done, BaseException):
                raise done
            return done

        def still(kept: Kept) -> Done | None:
            return Done(f"as at {kept.at}", "skipped") if holds else None

        return Step(name, "…", lambda: inputs, act, still)

    def follow(self, *steps: Step) -> list[str]:
        """Take the steps with what is on disk; return the states."""
        self.reports.clear()
        self.taken.clear()
        follow(steps, self.states(), self.said.append, self.reports.append)
        return [report.state for report in self.reports]

    def states(self) -> States:
        return States(self.folder, "25.02-open", self.said.append)

    @property
    def file(self) -> Path:
        return self.folder / "runs/25.02-open.json"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_a_step_with_the_same_inputs_whose_outcome_holds_is_skipped_and_says_so(run: Run) -> None:
    steps = (run.step("verify", done=Done("fine")), run.step("notes", done=Done("written")))
    assert run.follow(*steps) == ["done", "done"]
    assert run.follow(*steps) == ["skipped", "skipped"]
    assert run.taken == []
    assert "verify: skipped, as at 20" in "\n".join(run.said)


@pytest.mark.parametrize(
    "change", [{"inputs": "b"}, {"holds": False}], ids=["other inputs", "an outcome that does not hold"]
)
def test_a_step_is_taken_again_for(run: Run, change: dict[str, object]) -> None:
    assert run.follow(run.step("verify", done=Done("fine"))) == ["done"]
    assert run.follow(run.step("verify", done=Done("fine"), **change)) == ["done"]  # type: ignore[arg-type]
    assert run.taken == ["verify"]


def test_a_failure_ends_the_run_and_is_not_taken_for_done(run: Run) -> None:
    after = run.step("push", done=Done("sent"))
    assert run.follow(run.step("build", done=BuildError("a step failed")), after) == ["failed"]
    assert run.taken == ["build"]
    assert json.loads(run.file.read_text())["steps"]["build"]["outcome"] == "failed"
    assert run.follow(run.step("build", done=Done("built")), after) == ["done", "done"]
    assert run.taken == ["build", "push"]


def test_what_is_done_in_part_does_not_end_the_run_and_is_not_skipped_later(run: Run) -> None:
    missing = PartlyPublishedError("1 of 2 places do not have it")
    push = run.step("push", done=Done("1 of 2", "partly", error=missing))
    assert run.follow(push, run.step("notes", done=Done("written"))) == ["partly", "done"]
    assert run.follow(push) == ["partly"]
    assert run.taken == ["push"]


def test_ctrl_c_is_told_as_interrupted(run: Run) -> None:
    assert run.follow(run.step("verify", done=KeyboardInterrupt())) == ["failed"]
    assert run.reports[0].error is not None
    assert run.reports[0].error.exit_code == 130


def test_a_fault_of_ours_is_told_before_it_is_raised(run: Run) -> None:
    with pytest.raises(ZeroDivisionError):
        run.follow(run.step("verify", done=ZeroDivisionError("by zero")))
    assert [report.what for report in run.reports] == ["ZeroDivisionError: by zero"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:100],
        lambda text: "",
        lambda text: "[]",
        lambda text: text.replace('"format": 1', '"format": 2'),
        lambda text: text.replace('"inputs"', '"input"'),
        lambda text: text.replace('"done"', '"perfect"'),
        lambda text: text.replace('"verify"', '"verification"'),
        lambda text: text.replace('"a"', "7"),
        lambda text: text + "\0",
    ],
)
def test_of_a_damaged_state_nothing_is_believed(run: Run, damage: Callable[[str], str]) -> None:
    run.follow(run.step("verify", done=Done("fine", files={"verify.json": "0" * 64})))
    text = run.file.read_text()
    run.file.write_text(damage(text))
    assert run.file.read_text() != text
    assert run.follow(run.step("verify", done=Done("fine"))) == ["done"]
    assert any("cannot be believed" in line for line in run.said)
    assert run.states().of("verify") is not None


def test_what_is_kept_is_inputs_outcome_time_and_files(run: Run) -> None:
    run.follow(run.step("verify", "sha256:abc", done=Done("fine", files={"verify.json": "0" * 64})))
    kept = json.loads(run.file.read_text())["steps"]["verify"]
    assert kept.pop("at").startswith("20")
    assert kept.pop("seconds") < 5
    assert kept == {
        "inputs": "sha256:abc",
        "outcome": "done",
        "what": "fine",
        "files": {"verify.json": "0" * 64},
    }
    assert [path.name for path in run.file.parent.iterdir()] == [run.file.name]


def test_two_runs_of_one_release_wait_for_each_other(run: Run) -> None:
    waited = threading.Event()

    def second() -> None:
        with States(run.folder, "25.02-open", lambda line: waited.set()).alone():
            run.taken.append("second")

    with run.states().alone():
        thread = threading.Thread(target=second)
        thread.start()
        assert waited.wait(10)
        run.taken.append("first")
    thread.join(10)
    assert run.taken == ["first", "second"]
