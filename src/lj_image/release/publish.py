"""Record + targets -> published references, each read back; what is there already is left alone.

Every target's tag is asked for before the first byte goes out. One target's failure neither stops nor changes another,
and each success is in the record at once, so a second run does only what is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol

from lj_image.catalog.release import Release
from lj_image.errors import (
    EngineError,
    Interrupted,
    LjImageError,
    PartlyPublishedError,
    PublishError,
)
from lj_image.release.record import Built, Pushed, Record, Records
from lj_image.release.references import Target

if TYPE_CHECKING:
    from lj_image.builders.docker.push_progress import PushProgress

State = Literal["published", "already", "planned", "refused", "failed"]
"""`refused` is our own decision, before any byte; `failed` is the registry's, the network's or a proof's."""

RERUN_HINT = "run the same command again: what is published is left alone"


class Sender(Protocol):
    """Carries images to registries; `builders.docker.push.EngineSender` and `RegistrySender` are two."""

    def digests(self, image_id: str) -> Sequence[str] | None:
        """Return the manifest digests known for an image, None when the image is gone."""

    def remote_digest(self, sent_to: str) -> str | None:
        """Return the digest under a tag at a registry, None without such a tag; raises PublishError."""

    def push(self, image_id: str, sent_to: str, progress: PushProgress | None = None) -> str:
        """Push an image under a tag and return its manifest's digest; raises PublishError."""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one target."""

    target: Target
    state: State
    digest: str | None = None
    """What the tag holds, as the registry says; None when it does not exist or could not be asked for."""
    message: str = ""
    hint: str | None = None

    @property
    def ok(self) -> bool:
        """Say whether the target has the image, or would get it."""
        return self.state in ("published", "already", "planned")

    def line(self, width: int = 0) -> str:
        """Return one row of the table."""
        place = f"{self.target.reference:<{width}}"
        rewritten = f"(at {self.target.sent_to})" if self.target.rewritten else ""
        return "  ".join(
            part for part in (f"{self.state:<9}", place, self.digest, rewritten, self.message) if part
        ).rstrip()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of every target, in the order asked for."""

    image: str
    release: str
    tag: str
    image_id: str
    verified: bool
    """Whether this very image passed its verification."""
    results: tuple[Result, ...]

    def error(self) -> PublishError | None:
        """Return what the command must end with: None when every target has the image, or would get it."""
        missing = [result for result in self.results if not result.ok]
        if not missing:
            return None
        kind = PublishError if len(missing) == len(self.results) else PartlyPublishedError
        rows = "".join(f"\n  {result.target.reference}: {result.message}" for result in missing)
        hints = dict.fromkeys(result.hint for result in missing if result.hint)
        return kind(
            f"{len(missing)} of {len(self.results)} places do not have {self.tag}:{rows}",
            hint="\n".join((*hints, RERUN_HINT)),
        )

    def lines(self) -> tuple[str, ...]:
        """Return the table for people."""
        width = max((len(result.target.reference) for result in self.results), default=0)
        return tuple(result.line(width) for result in self.results)

    def to_json(self) -> dict[str, Any]:
        """Return everything, for machines."""
        return {
            "image": self.image,
            "release": self.release,
            "tag": self.tag,
            "image_id": self.image_id,
            "verified": self.verified,
            "targets": [_json_of(result) for result in self.results],
        }


def published_line(outcome: Outcome) -> str:
    """Return all references that hold the image, by digest, on one line."""
    there = (result for result in outcome.results if result.state in ("published", "already"))
    return " ".join(f"{result.target.reference}@{result.digest}" for result in there)


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
    force_tag: bool = False,
    dry_run: bool = False,
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
    run = _Run(records, key, record, built, sender, digests, force_tag)
    try:
        asked = [run.asked(target) for target in targets]
        run.expect(asked)
        results = [run.agreed(result) if dry_run else run.finished(result, progress) for result in asked]
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
        force_tag: bool,
    ) -> None:
        self.records, self.key, self.record, self.built, self.sender = records, key, record, built, sender
        self.force_tag = force_tag
        self.verified = record.proves(built.image_id)
        self.recorded = tuple(item.digest for item in record.pushed if item.image_id == built.image_id)
        """Digests that this image has at registries, as the record says."""
        self.known = {*digests, *self.recorded}
        """Every digest by which this image is known."""
        self.digest: str | None = None
        """The one that all places must end on, once any has it."""
        self.settled = 0

    def asked(self, target: Target) -> Result:
        """Ask for a target's tag, and decide."""
        try:
            at_registry = self.sender.remote_digest(target.sent_to)
        except (PublishError, EngineError) as error:
            return _failed(target, error)
        return decide(target, at_registry, self.known, self.built.image_id, force_tag=self.force_tag)

    def expect(self, asked: Iterable[Result]) -> None:
        """Learn the digest to end on: that of places which have the image, from earlier runs too."""
        there = (result.digest for result in asked if result.state == "already")
        self.digest = next(iter((*self.recorded, *there)), None)

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
        new = self._entry(result.target, result.digest)
        old = next((item for item in self.record.pushed if item.reference == new.reference), None)
        if old is None or replace(new, at=old.at) != old:
            self.records.update(self.key, lambda now: (now or self.record).with_pushed(new))
        self.settled += 1
        return result

    def _entry(self, target: Target, digest: str) -> Pushed:
        return Pushed(
            reference=target.reference,
            sent_to=target.sent_to,
            digest=digest,
            image_id=self.built.image_id,
            network=target.endpoint.network,
            region=target.endpoint.region,
            verified=self.verified,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
        )


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


def _json_of(result: Result) -> dict[str, Any]:
    endpoint = result.target.endpoint
    return {
        "reference": result.target.reference,
        "sent_to": result.target.sent_to,
        "network": endpoint.network,
        "region": endpoint.region,
        "state": result.state,
        "digest": result.digest,
        "message": result.message,
        "hint": result.hint,
    }
