"""Record + targets -> published references, each read back; what is there already is left alone.

Every target's tag is asked for before the first byte goes out. One target's failure neither stops nor changes another,
and each success is in the record at once, so a second run does only what is missing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from lj_image.catalog.release import Release
from lj_image.errors import (
    EngineError,
    Interrupted,
    LjImageError,
    PublishError,
)
from lj_image.release.outcome import (
    PLAINLY,
    RERUN_HINT,
    Outcome,
    Result,
    Wishes,
    pushed_entry,
)
from lj_image.release.record import Built, Pushed, Record, Records
from lj_image.release.references import Target

if TYPE_CHECKING:
    from lj_image.builders.docker.push_progress import PushProgress


class Sender(Protocol):
    """Carries images to registries; `builders.docker.push.EngineSender` and `RegistrySender` are two."""

    def digests(self, image_id: str) -> Sequence[str] | None:
        """Return the manifest digests known for an image, None when the image is gone."""

    def remote_digest(self, sent_to: str) -> str | None:
        """Return the digest under a tag at a registry, None without such a tag; raises PublishError."""

    def push(self, image_id: str, sent_to: str, progress: PushProgress | None = None) -> str:
        """Push an image under a tag and return its manifest's digest; raises PublishError."""

    def push_everywhere(
        self, image_id: str, targets: Sequence[Target], wishes: Wishes, settled: Callable[[Result], None]
    ) -> tuple[Result, ...] | None:
        """Push to all targets at once, and say what became of each; None from who does one after the other.

        `settled` is told of each that has it, as soon as it has, from any thread. Raises PublishError where the image
        cannot be read.
        """

    @property
    def is_parallel(self) -> bool:
        """Whether threads may ask it at once."""

    def cut_off(self) -> None:
        """End every question that is open now; called by another thread than those that ask."""


def publish(
    release: Release,
    tag: str,
    *,
    records: Records,
    key: str,
    sender: Sender,
    targets: Sequence[Target],
    planned: str | None = None,
    verify: bool = True,
    wishes: Wishes = PLAINLY,
    progress: PushProgress | None = None,
) -> Outcome:
    """Publish the image in the record of `key` to every target.

    `planned` is the digest of the plan as the release stands now: an image made from another one is refused.
    Raises PublishError when the image may not be published at all, Interrupted on Ctrl-C; what single targets met is
    in the outcome. With `verify=False` an image without proof is let through, and the record says that it had none.
    """
    record, built = _publishable(records.read(key), key, planned, verify=verify)
    digests = sender.digests(built.image_id)
    if digests is None:
        raise PublishError(f"{_place(built)} does not have the image {built.image_id} any more", hint=_build(key))
    run = _Run(records, key, record, built, sender, digests, wishes)
    try:
        asked = run.asked_all(targets)
        run.expect(asked)
        results = [run.agreed(result) for result in asked] if wishes.dry_run else run.finished_all(asked, progress)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted: {run.settled} of {len(targets)} places have {tag}", hint=RERUN_HINT) from None
    return Outcome(release.image, release.name, tag, built.image_id, run.verified, tuple(results))


def decide(target: Target, at_registry: str | None, known: Iterable[str], image_id: str, *, force_tag: bool) -> Result:
    """Say what to do at a target, from what its tag holds and from the digests that this image is known by."""
    known = frozenset(known)
    if at_registry is None:
        return Result(target, "planned", None, "new tag")
    if at_registry in known:
        return Result(target, "already", at_registry)
    ours = " or ".join(sorted(known - {image_id})) or f"of image {image_id}"
    if force_tag:
        return Result(target, "planned", at_registry, f"the tag moves from {at_registry} to ours, {ours}")
    return Result(
        target,
        "refused",
        at_registry,
        f"the tag holds {at_registry}; ours is {ours}",
        "a published tag does not move by itself: publish under a new release, or write --force-tag",
    )


class _Run:
    """One run over the targets: what all of them share."""

    def __init__(
        self,
        records: Records,
        key: str,
        record: Record,
        built: Built,
        sender: Sender,
        digests: Iterable[str],
        wishes: Wishes,
    ) -> None:
        self.records, self.key, self.record, self.built, self.sender = records, key, record, built, sender
        self.wishes = wishes
        self.verified = record.proves(built.image_id)
        self.recorded = tuple(item.digest for item in record.pushed if item.image_id == built.image_id)
        """Digests that this image has at registries, as the record says."""
        self.known = {*digests, *self.recorded}
        """Every digest by which this image is known."""
        self.digest: str | None = None
        """The one that all places must end on, once any has it."""
        self.settled = 0

    def asked_all(self, targets: Sequence[Target]) -> list[Result]:
        """Ask for the tags of all targets at once; a host that does not answer keeps only its own thread waiting."""
        if not self.sender.is_parallel:
            return [self.asked(target) for target in targets]
        with ThreadPoolExecutor(max(1, len(targets)), "ask") as pool:
            try:
                return list(pool.map(self.asked, targets))
            except BaseException:
                self.sender.cut_off()
                raise

    def asked(self, target: Target) -> Result:
        """Ask for a target's tag, and decide."""
        try:
            at_registry = self.sender.remote_digest(target.sent_to)
        except (PublishError, EngineError) as error:
            return _failed(target, error)
        return decide(target, at_registry, self.known, self.built.image_id, force_tag=self.wishes.force_tag)

    def expect(self, asked: Iterable[Result]) -> None:
        """Learn the digest to end on: that of places which have the image, from earlier runs too."""
        there = (result.digest for result in asked if result.state == "already")
        self.digest = next(iter((*self.recorded, *there)), None)

    def finished_all(self, asked: Sequence[Result], progress: PushProgress | None) -> list[Result]:
        """Push where that is planned, everywhere at once if the sender can, and record what is proven."""
        wants = any(result.state == "planned" or self._may_move(result) for result in asked)
        # Those that have it already come along: others on the same registry get it from there.
        wanting = [result.target for result in asked if wants and result.state in ("planned", "already")]
        if self.wishes.all_or_nothing and any(not result.ok for result in asked):
            return [
                self._settle(self.agreed(result)) if result.state == "already" else _withheld(result)
                for result in asked
            ]
        pushed = self._everywhere(wanting) if wanting else ()
        if pushed is None:
            return [self.finished(result, progress) for result in asked]
        by_target = dict(zip(wanting, pushed, strict=True))
        return [self._settle(self.agreed(by_target.get(result.target, result))) for result in asked]

    def _everywhere(self, wanting: Sequence[Target]) -> tuple[Result, ...] | None:
        """Push to all at once; each success is in the record at once, too, whatever becomes of the others."""
        lock = threading.Lock()

        def settled(result: Result) -> None:
            with lock:
                self._settle(self.agreed(result))

        return self.sender.push_everywhere(self.built.image_id, wanting, self.wishes, settled)

    def _may_move(self, result: Result) -> bool:
        """Say whether a place that has the image may have other tags that do not stand for it yet."""
        return result.state == "already" and bool(result.target.endpoint.moving_tags)

    def finished(self, result: Result, progress: PushProgress | None) -> Result:
        """Push where that is planned, and record what is proven."""
        if result.state == "planned":
            # Asked once more: hours may have passed, and a config may send two references to one place.
            result = self.asked(result.target)
        if result.state == "already":
            return self._settle(self.agreed(result))
        if result.state != "planned":
            return result
        try:
            return self._pushed(result, progress)
        except (PublishError, EngineError) as error:
            return _failed(result.target, error)

    def agreed(self, result: Result) -> Result:
        """Return the result, or a failure if the place ended on another digest than the others."""
        if not result.digest or result.state not in ("published", "already"):
            return result
        self.digest = self.digest or result.digest
        if result.digest == self.digest:
            return result
        words = f"ended on {result.digest}, other places on {self.digest}: the same image, compressed by another engine"
        return Result(
            result.target,
            "failed",
            result.digest,
            words,
            "push it with --force-tag from the engine that pushed to the others",
        )

    def _pushed(self, planned: Result, progress: PushProgress | None) -> Result:
        digest = self.sender.push(self.built.image_id, planned.target.sent_to, progress)
        self.known.add(digest)
        try:
            return self._proven(planned, digest)
        except KeyboardInterrupt:
            # The push is complete; unrecorded, its digest would be a stranger's to the next run. A second Ctrl-C stops.
            self._proven(planned, digest)
            raise

    def _proven(self, planned: Result, digest: str) -> Result:
        held = self.sender.remote_digest(planned.target.sent_to)
        if held != digest:
            raise PublishError(
                f"the tag moved meanwhile: we pushed {digest}, and the registry has {held or 'no such tag'}",
                hint="find out who else publishes this tag before you push again",
            )
        before = f"moved from {planned.digest}" if planned.digest and planned.digest != digest else ""
        return self._settle(self.agreed(Result(planned.target, "published", digest, before)))

    def _settle(self, result: Result) -> Result:
        """Put a success in the record, unless it says just that."""
        if not (result.ok and result.digest):
            return result
        new = self._entry(result, result.digest)
        old = next((item for item in self.record.pushed if item.reference == new.reference), None)
        if old is None or not _says_the_same(old, new) or (new.seconds and not old.seconds):
            self.records.update(self.key, lambda now: (now or self.record).with_pushed(new))
        self.settled += 1
        return result

    def _entry(self, result: Result, digest: str) -> Pushed:
        return pushed_entry(result, digest, self.built.image_id, verified=self.verified)


def _says_the_same(old: Pushed, new: Pushed) -> bool:
    """Say whether a second run has nothing to add: what the first one has sent is not what it does anew."""
    return (old.sent_to, old.digest, old.image_id, old.verified, old.tags) == (
        new.sent_to,
        new.digest,
        new.image_id,
        new.verified,
        new.tags,
    )


def _withheld(result: Result) -> Result:
    if result.state != "planned":
        return result
    return replace(result, state="withheld", message="nothing was sent, since another place cannot have it")


def _publishable(record: Record | None, key: str, planned: str | None, *, verify: bool) -> tuple[Record, Built]:
    """Return the record and its image; raises PublishError when that image is not fit to be published."""
    if record is None or record.built is None:
        raise PublishError(f"{key} has not been built on this machine", hint=_build(key))
    built = record.built
    if built.partial:
        raise PublishError(f"the image of {key} is partial: not all of its components are in it", hint=_build(key))
    if built.overridden:
        tried = ", ".join(f"{name}={version}" for name, version in built.overridden.items())
        raise PublishError(
            f"the image of {key} was tried with --set {tried}, which no manifest says",
            hint="write it into the release's file, then build again",
        )
    if planned is not None and built.plan != planned:
        raise PublishError(f"{key} was changed after its image was built", hint=_build(key))
    if verify and not record.proves(built.image_id):
        raise _unproven(record, built, key)
    return record, built


def _unproven(record: Record, built: Built, key: str) -> PublishError:
    verified = record.verified
    if verified is None:
        words = f"the image of {key} is not verified"
    elif verified.image_id != built.image_id:
        words = f"{key} was built anew after it was verified: {verified.image_id} was, {built.image_id} is not"
    else:
        words = f"the image of {key} failed its verification: {', '.join(verified.failed) or 'see its report'}"
    return PublishError(
        words, hint="run: lj-image verify (push --no-verify lets it through, and the record will say so)"
    )


def _build(key: str) -> str:
    return f"build it: lj-image build (for {key})"


def _place(built: Built) -> str:
    return "the cache" if built.is_assembled else "the engine"


def _failed(target: Target, error: LjImageError) -> Result:
    return Result(target, "failed", None, error.message, error.hint)
