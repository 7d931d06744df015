"""The steps that make the image, with an engine or without, and prove it, which needs one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from lj_image import __version__
from lj_image.errors import EngineError, VerificationError
from lj_image.plan import plan_digest
from lj_image.release.build import Options, Workshop, build
from lj_image.release.pipeline.files import are_there, contents_of, digest_of, sha256_of
from lj_image.release.pipeline.step import Done, Kept, Step
from lj_image.release.pipeline.work import Work
from lj_image.release.proof import built_image, prove
from lj_image.release.record import Built
from lj_image.whole import write_whole

REPORT: Final = "verify.json"
JUNIT: Final = "verify.junit.xml"


def build_step(work: Work) -> Step:
    """Return the step that builds; whether the image is up to date, the build itself knows best."""

    def act() -> Done:
        built, up_to_date = _build(work)
        return Done(f"up to date: {_told(built)}", "skipped") if up_to_date else Done(_told(built))

    return Step(
        "build",
        "making the image, unless it is there",
        lambda: digest_of(plan_digest(work.plan), work.plan.lock.digest),
        act,
    )


def _build(work: Work) -> tuple[Built, bool]:
    choice = work.choice
    if not choice.assembles:
        return build(work.plan, Options(choice.name), work.workshop, work.means.observe)
    work.means.say(f"builder: oci ({choice.reason})")
    return work.means.assemble(work.plan)


def _told(built: Built) -> str:
    how = " compressed" if built.is_assembled else ""
    return f"{built.tag} {built.image_id}, {built.size_bytes / 1024**2:,.1f} MiB{how}, by {built.builder}"


def verify_step(work: Work) -> Step:
    """Return the step that proves the image; a proof holds for this image, plan, these tests and this tool."""

    def inputs() -> str:
        tests = work.release.folder / "tests"
        image_id = _built(work)
        return digest_of(image_id, plan_digest(work.plan), contents_of(tests, tests.rglob("*")), __version__)

    def act() -> Done:
        image_id = _built(work)
        folder = work.states.files
        report, _ = prove(work.plan, image_id, _workshop(work), junit=folder / JUNIT)
        work.report = report
        write_whole(folder / REPORT, _json(work), alone=True)
        _hand_out(folder, work.folder)
        if not report.passed:
            failed = ", ".join(check.name for check in report.failed) or "nothing was checked"
            raise VerificationError(report.summary(), hint=f"{failed}\nmore: {work.folder / REPORT}")
        return Done(report.summary(), files={name: sha256_of(folder / name) or "" for name in (REPORT, JUNIT)})

    def still(kept: Kept) -> Done | None:
        record, image_id = work.record(), _built(work)
        if record is None or record.verified is None or not record.proves(image_id):
            return None
        if not kept.files or not are_there(work.states.files, kept.files):
            return None
        _hand_out(work.states.files, work.folder)
        return Done(f"this image was proven at {record.verified.at}", "skipped")

    return Step("verify", "holding the image against its promises", inputs, act, still)


def _workshop(work: Work) -> Workshop:
    """Return engine, store and records; raises EngineError that says what can be done without an engine."""
    try:
        return work.workshop
    except EngineError as error:
        raise EngineError(
            f"a proof needs an engine: {error.message}",
            hint=f"{error.hint}; the same command goes on here\n"
            f"or publish without a proof, which the record will say: lj-image push {work.asked.release} --no-verify",
        ) from None


def _built(work: Work) -> str:
    return built_image(work.record(), work.release.key, work.release.image_in_commands)


def _json(work: Work) -> str:
    from lj_image.verify.report import to_json

    assert work.report is not None
    return json.dumps(to_json(work.report), indent=2, ensure_ascii=False) + "\n"


def _hand_out(kept: Path, folder: Path) -> None:
    """Copy the proof's papers into the folder of the run."""
    for name in (REPORT, JUNIT):
        write_whole(folder / name, (kept / name).read_bytes(), alone=True)
