"""The step that publishes. Registries are asked in every run, and what they have already is not sent again."""

from __future__ import annotations

from collections.abc import Sequence

from lj_image.errors import EngineError, LjImageError, PartlyPublishedError, PublishError
from lj_image.plan import plan_digest
from lj_image.release.outcome import Outcome, Result
from lj_image.release.pipeline.files import digest_of
from lj_image.release.pipeline.step import Done, Step
from lj_image.release.pipeline.work import Work
from lj_image.release.publish import publish
from lj_image.release.record import Record
from lj_image.release.references import targets


def push_step(work: Work) -> Step:
    """Return the step that publishes to every target, and reads every digest back."""

    def inputs() -> str:
        built = work.built()
        return digest_of(built.image_id if built else None, [target.sent_to for target in work.targets])

    def act() -> Done:
        require_one_image(work)
        work.outcome = _published(work)
        error = work.outcome.error()
        if error is not None and not isinstance(error, PartlyPublishedError):
            raise error
        return _told(work.outcome, error)

    return Step("push", f"asking {counted(work.targets)}, sending what is missing", inputs, act)


def _published(work: Work) -> Outcome:
    return publish(
        work.release,
        work.release.tag,
        records=work.records,
        key=work.release.key,
        sender=work.sender,
        targets=work.targets,
        planned=plan_digest(work.plan),
    )


def _told(outcome: Outcome, error: LjImageError | None) -> Done:
    """Say how many places have it, and whether anything was sent."""
    there = [result for result in outcome.results if result.ok]
    sent = sum(result.state == "published" for result in there)
    digest = next((result.digest for result in there if result.digest), None)
    if error is not None:
        return Done(f"{len(there)} of {counted(outcome.results)} have {digest}", "partly", error=error)
    if not sent:
        return Done(f"already: {counted(outcome.results)} have {digest}", "skipped")
    return Done(f"{sent} sent, {len(there) - sent} had it: {digest}")


def require_one_image(work: Work) -> None:
    """Raise PublishError where the release is public already as another image than the one of this machine.

    A machine that has published the image knows its digest. A new one would end a single region on a digest of its own,
    so it asks the public name, which holds the digest of all.
    """
    record, built = work.record(), work.built()
    if record is None or built is None or any(target.endpoint.network == "public" for target in work.targets):
        return
    if any(item.image_id == built.image_id for item in record.pushed):
        return
    (public,) = targets(work.release, work.release.tag, (), True, work.means.config())
    held = work.sender.remote_digest(public.sent_to)
    if held is not None and held not in (work.sender.digests(built.image_id) or ()):
        raise PublishError(
            f"{work.release.tag} is public as {held}, and this machine has another image, {built.image_id}",
            hint="run it on the machine that published it: every region is to end on one digest",
        )


def ask(work: Work) -> Outcome:
    """Ask every target what it has under the tag, and say what a run would do; sends nothing."""
    record, built = work.record(), work.built()
    fit = record is not None and built is not None and built.plan == plan_digest(work.plan)
    known = frozenset(work.sender.digests(built.image_id) or ()) if fit and built else frozenset()
    if fit and record and built:
        known |= {item.digest for item in record.pushed if item.image_id == built.image_id}
    results = tuple(_asked(work, position, known) for position in range(len(work.targets)))
    release, image_id = work.release, built.image_id if fit and built else ""
    return Outcome(release.image, release.name, release.tag, image_id, _is_proven(record), results)


def _is_proven(record: Record | None) -> bool:
    return record is not None and record.built is not None and record.proves(record.built.image_id)


def _asked(work: Work, position: int, known: frozenset[str]) -> Result:
    target = work.targets[position]
    try:
        held = work.sender.remote_digest(target.sent_to)
    except (PublishError, EngineError) as error:
        return Result(target, "failed", None, error.message, error.hint)
    if held in known:
        return Result(target, "already", held)
    unknown = "the tag is there; whether it is ours shows when the image is built and pushed"
    return Result(target, "planned", held, "new tag" if held is None else unknown)


def counted(places: Sequence[object]) -> str:
    """Return `1 place` or `3 places`."""
    return f"{len(places)} place{'' if len(places) == 1 else 's'}"
