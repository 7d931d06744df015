"""The step that writes the notes: for people, from the record of what was built, proven and published."""

from __future__ import annotations

from typing import Final

from lj_image import __version__
from lj_image.errors import LjImageError
from lj_image.release.pipeline.files import are_there, contents_of, digest_of, sha256_of
from lj_image.release.pipeline.step import Done, Kept, Step
from lj_image.release.pipeline.work import Work
from lj_image.release.record import Record

SAID_IN: Final = ("*.yaml", "releases/*.yaml", "bases/*.yaml", "locks/*.txt", "notes/**/*")
"""What notes are made from, in the folder of an image."""


def notes_step(work: Work) -> Step:
    """Return the step that writes notes into the folder of the run."""

    def inputs() -> str:
        folders = work.means.templates().folders
        images = work.release.folder
        said = (path for pattern in SAID_IN for path in images.glob(pattern))
        templates = [contents_of(folder, folder.rglob("*.j2")) for folder in folders]
        return digest_of(_evidence(_recorded(work)), contents_of(images, said), templates, __version__)

    def act() -> Done:
        from lj_image.release.notes import note_facts, write_notes

        if work.release.notes is None:
            return Done("this family writes none: its image.yaml has no `notes`", "skipped")
        facts = note_facts(work.means.catalog, work.means.config(), work.release, _recorded(work))
        written = write_notes(facts, work.means.templates(), work.folder)
        names = [path.relative_to(work.folder).as_posix() for path in written]
        return Done(
            ", ".join(names) + _without(work), files={name: sha256_of(work.folder / name) or "" for name in names}
        )

    def still(kept: Kept) -> Done | None:
        if not kept.files or not are_there(work.folder, kept.files):
            return None
        return Done(f"unchanged: {', '.join(kept.files)}", "skipped")

    return Step("notes", f"writing them to {work.folder}", inputs, act, still)


def _without(work: Work) -> str:
    """Say which places the notes cannot name, because they do not have the image."""
    results = work.outcome.results if work.outcome else ()
    missing = [result.target.endpoint.region or "public" for result in results if not result.ok]
    return f"; not published, so not named: {', '.join(missing)}" if missing else ""


def _recorded(work: Work) -> Record:
    record = work.record()
    if record is None:
        raise LjImageError(f"the record of {work.release.key} is gone", hint="run it again: it is built anew")
    return record


def _evidence(record: Record) -> list[object]:
    """Return what notes may tell of a record; not when it happened, which changes nothing."""
    built, verified = record.built, record.verified
    return [
        [built.image_id, built.plan, built.lock, built.base, built.size_bytes] if built else None,
        [verified.image_id, verified.passed, verified.checks, verified.found] if verified else None,
        sorted([item.reference, item.digest, item.image_id, item.verified] for item in record.pushed),
    ]
