"""A tag is taken away from places: only what the record knows as the release, and no other tag with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, Literal

from lj_image.errors import LjImageError, PartlyPublishedError, PublishError
from lj_image.oci.capabilities import Capabilities
from lj_image.oci.reference import Reference
from lj_image.registry.client import Registry
from lj_image.registry.tags import delete_manifest, delete_tag, tags_of
from lj_image.release.asking import OpenRegistry, ask_all, open_briefly
from lj_image.release.record import Record, Records, Retracted
from lj_image.release.references import Target
from lj_image.release.status import Known

State = Literal["found", "absent", "retracted", "refused", "failed"]
"""`found` can be retracted; `refused` is our own decision, `failed` the registry's or the network's."""

DELETION_HINT: Final = (
    "delete the tag where the registry is administered; or let it delete: Docker's own needs\n"
    "`storage: {delete: {enabled: true}}` in its configuration, hosted ones a role or a setting"
)


@dataclass(frozen=True, slots=True)
class Retraction:
    """What became, or would become, of a tag at one place."""

    target: Target
    state: State
    digest: str | None = None
    """What the tag holds, or held."""
    message: str = ""
    hint: str | None = None
    also: tuple[str, ...] = ()
    """Further tags that went with it, where a registry deletes by digest alone."""

    def to_json(self) -> dict[str, Any]:
        """Return everything, for machines."""
        return {
            "place": self.target.endpoint.name,
            "reference": self.target.reference,
            "sent_to": self.target.sent_to,
            "state": self.state,
            "digest": self.digest,
            "also": list(self.also),
            "message": self.message,
            "hint": self.hint,
        }


def look(
    targets: Sequence[Target], known: Known, own_tag: str, *, force: bool, open_registry: OpenRegistry = open_briefly
) -> tuple[Retraction, ...]:
    """Ask every place what the tag holds, and decide whether it may go; changes nothing. Raises Interrupted.

    `own_tag` is the release's own, for what the record says of references.
    """

    def ask(registry: Registry, target: Target) -> Retraction:
        try:
            return _decided(registry, target, known.expected(_with_tag(target.reference, own_tag)), force=force)
        except LjImageError as error:
            return Retraction(target, "failed", None, error.message, error.hint)

    return ask_all(targets, _host, ask, open_registry)


def retract(
    found: Sequence[Retraction],
    records: Records,
    key: str,
    *,
    force: bool,
    open_registry: OpenRegistry = open_briefly,
) -> tuple[Retraction, ...]:
    """Take the tag away from every place where it was found, and put that into the record of `key`.

    What single places met is in the answer. Raises Interrupted.
    """

    def take_away(registry: Registry, item: Retraction) -> Retraction:
        if item.state != "found":
            return item
        try:
            gone = _taken_away(registry, item, force=force)
        except LjImageError as error:
            return replace(item, state="failed", message=error.message, hint=error.hint)
        if gone.state == "retracted" and records.path(key).exists():
            records.update(key, partial(_without, gone=gone))
        return gone

    return ask_all(found, lambda item: _host(item.target), take_away, open_registry)


def error_of(found: Sequence[Retraction], tag: str) -> PublishError | None:
    """Return what the command must end with: None when no place has the tag any more, or would lose it."""
    kept = [item for item in found if item.state in ("refused", "failed")]
    if not kept:
        return None
    kind = PublishError if len(kept) == len(found) else PartlyPublishedError
    rows = "".join(f"\n  {item.target.endpoint.name}: {item.message}" for item in kept)
    hints = dict.fromkeys(item.hint for item in kept if item.hint)
    return kind(
        f"{tag} was not retracted from {len(kept)} of {len(found)} places:{rows}", hint="\n".join(hints) or None
    )


def _host(target: Target) -> tuple[str, Capabilities]:
    return Reference.parse(target.sent_to).host, target.endpoint.capabilities


def _with_tag(reference: str, tag: str) -> str:
    return f"{reference.rpartition(':')[0]}:{tag}"


def _decided(registry: Registry, target: Target, expected: Sequence[str], *, force: bool) -> Retraction:
    reference = Reference.parse(target.sent_to).tagged()
    held = registry.head(reference.repository, reference.wanted)
    if held is None:
        return Retraction(target, "absent", None, "there is no such tag")
    if str(held) in expected or force:
        return Retraction(target, "found", str(held), "" if str(held) in expected else "not what the record has")
    if not expected:
        message = f"the tag holds {held}, and no record on this machine says that this is the release"
    else:
        message = f"the tag holds {held}; the record has {' or '.join(expected)}"
    return Retraction(target, "refused", str(held), message, "look who published it; --force retracts it all the same")


def _taken_away(registry: Registry, item: Retraction, *, force: bool) -> Retraction:
    reference = Reference.parse(item.target.sent_to).tagged()
    repository, tag = reference.repository, reference.wanted
    held = registry.head(repository, tag)
    if held is None:  # another name of the same store, or another person
        return replace(item, state="retracted", message="was gone already")
    if str(held) != item.digest:
        words = f"the tag moved meanwhile, from {item.digest} to {held}"
        return replace(item, state="refused", message=words, hint="run the same command again, and look at it")
    gone = replace(item, state="retracted")
    if not delete_tag(registry, repository, tag):
        gone = _by_digest(registry, gone, force=force)
    if gone.state == "retracted" and registry.head(repository, tag) is not None:
        words = "the registry says that the tag is deleted, and still has it"
        return replace(item, state="failed", message=words, hint="ask again in a while: lj-image status")
    return gone


def _by_digest(registry: Registry, item: Retraction, *, force: bool) -> Retraction:
    """Delete the manifest itself, where a registry deletes nothing else: then every tag of it goes."""
    reference, digest = Reference.parse(item.target.sent_to).tagged(), str(item.digest)
    others = _sharing(registry, reference, digest)
    if others and not force:
        return replace(
            item,
            state="refused",
            message=f"the registry deletes by digest alone, and {', '.join(others)} would go, too",
            hint="--force retracts them together; or move those tags to another image first",
        )
    done = delete_manifest(registry, reference.repository, digest)
    if done or registry.head(reference.repository, reference.wanted) is None:  # gone by another name of the same store
        return replace(item, also=others)
    return replace(item, state="failed", message=f"{reference.host} does not delete", hint=DELETION_HINT)


def _sharing(registry: Registry, reference: Reference, digest: str) -> tuple[str, ...]:
    """Return the other tags of a repository that stand for a digest."""
    repository = reference.repository
    others = sorted(tag for tag in tags_of(registry, repository) if tag != reference.wanted)
    return tuple(tag for tag in others if str(registry.head(repository, tag)) == digest)


def _without(record: Record | None, *, gone: Retraction) -> Record:
    if record is None:
        raise LjImageError("the record is gone", hint="nothing was lost: the tag is retracted")
    now = datetime.now(UTC).isoformat(timespec="seconds")
    reference = gone.target.reference
    for name in (reference, *(_with_tag(reference, tag) for tag in gone.also)):
        record = record.with_retracted(Retracted(name, str(gone.digest), now))
    return record
