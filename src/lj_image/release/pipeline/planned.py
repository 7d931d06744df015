"""A dry run's steps: lint and lock are taken, registries are asked, and the rest says what it would do."""

from __future__ import annotations

from collections.abc import Callable

from lj_image.plan import plan_digest, total_line
from lj_image.release.pipeline.publishing import ask, counted
from lj_image.release.pipeline.step import Done, Step, StepName
from lj_image.release.pipeline.work import Work


def planned_steps(work: Work) -> tuple[Step, ...]:
    """Return what stands for build, verify, push and notes."""
    return (
        _planned("build", lambda: Done(_building(work), "planned")),
        _planned("verify", lambda: Done(_verifying(work), "planned")),
        _planned("push", lambda: _pushing(work)),
        _planned("notes", lambda: Done(f"would be written to {work.folder}", "planned")),
    )


def _planned(name: StepName, act: Callable[[], Done]) -> Step:
    return Step(name, "what would it do?", str, act)


def _building(work: Work) -> str:
    built = work.built()
    if built is not None and built.plan == plan_digest(work.plan):
        return f"would look for {built.image_id}, built at {built.at} from this plan by {built.builder}"
    how = "assemble, without an engine," if work.choice.assembles else "build"
    return f"would {how} {total_line(work.plan)}"


def _verifying(work: Work) -> str:
    record = work.record()
    if record is None or record.built is None or record.built.plan != plan_digest(work.plan):
        return "would prove the image"
    if record.verified is None or not record.proves(record.built.image_id):
        return f"would prove {record.built.image_id}"
    return f"would prove nothing anew, unless tests or tool have changed since {record.verified.at}"


def _pushing(work: Work) -> Done:
    work.outcome = ask(work)
    if (error := work.outcome.error()) is not None:
        return Done("not every place answers", "partly", error=error)
    new = sum(result.state == "planned" for result in work.outcome.results)
    return Done(f"would send to {new} of {counted(work.outcome.results)}", "planned")
