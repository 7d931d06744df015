"""The run: lint, lock, build, verify, push and notes of one release, from wherever the last run ended."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from lj_image.errors import LjImageError
from lj_image.release.pipeline.checking import lock_step, require_no_findings
from lj_image.release.pipeline.files import append_text
from lj_image.release.pipeline.follow import NoMemory, follow
from lj_image.release.pipeline.making import build_step, verify_step
from lj_image.release.pipeline.noting import notes_step
from lj_image.release.pipeline.planned import planned_steps
from lj_image.release.pipeline.publishing import push_step
from lj_image.release.pipeline.report import RunReport
from lj_image.release.pipeline.step import Done, Step, StepReport
from lj_image.release.pipeline.summary import markdown
from lj_image.release.pipeline.work import Asked, Means, Work
from lj_image.release.references import targets
from lj_image.whole import write_whole


def release(asked: Asked, means: Means) -> RunReport:
    """Take every step that is left of a release, and return what came of each; a failed one ends the run.

    Two runs of one release wait for each other. The summary and the files are written whatever happens; what the caller
    has to end with is `RunReport.error`. A dry run builds, sends and keeps nothing.
    """
    run = _Run(asked, means)
    try:
        run.take_all()
    finally:
        report = run.report()
        _write(report)
    return report


class _Run:
    """One run, and what it has come to so far."""

    def __init__(self, asked: Asked, means: Means) -> None:
        self.asked, self.means = asked, means
        self.work: Work | None = None
        self.reports: list[StepReport] = []

    def take_all(self) -> None:
        lint = Step("lint", "are the files in order?", str, self._lint)
        if not follow((lint,), NoMemory(), self.means.say, self.reports.append) or self.work is None:
            return
        if self.asked.dry_run:
            steps = (lock_step(self.work), *planned_steps(self.work))
            follow(steps, NoMemory(), self.means.say, self.reports.append)
            return
        with self.work.states.alone():
            follow(_steps(self.work), self.work.states, self.means.say, self.reports.append)

    def _lint(self) -> Done:
        """Check every file, then find the release that is meant and its targets."""
        require_no_findings(self.means.lint(self.asked.release))
        found = self.means.resolve(self.asked.release, self.asked.variant)
        places = targets(found, found.tag, self.asked.regions, self.asked.public, self.means.config())
        self.work = Work(self.asked, self.means, found, places)
        return Done("no findings")

    def report(self) -> RunReport:
        record = None
        with suppress(LjImageError):  # a damaged record has failed the step that read it, and its summary is wanted
            record = self.work.record() if self.work else None
        return RunReport(self.asked, tuple(self.reports), self.work, record)


def _steps(work: Work) -> tuple[Step, ...]:
    return lock_step(work), build_step(work), verify_step(work), push_step(work), notes_step(work)


def _write(report: RunReport) -> None:
    """Write what a run leaves; a dry run leaves nothing in a folder that nobody named."""
    text = markdown(report)
    if report.asked.summary is not None:
        append_text(report.asked.summary, text)
    folder = _folder(report)
    if folder is not None:
        write_whole(folder / "summary.md", text, alone=True)
        plain = json.dumps(report.to_json(), indent=2, ensure_ascii=False) + "\n"
        write_whole(folder / "release.json", plain, alone=True)


def _folder(report: RunReport) -> Path | None:
    if report.work is None or report.asked.dry_run:
        return report.asked.output
    return report.work.folder
