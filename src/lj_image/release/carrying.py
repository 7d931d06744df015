"""Content + targets -> published: places are opened and closed, and what became of each is told as for a push."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import partial

from lj_image.errors import Interrupted
from lj_image.oci.content import Content
from lj_image.oci.reference import Reference
from lj_image.registry.publishing.place import Place, Placed
from lj_image.registry.transfer.delivery import Destination
from lj_image.registry.uploading.journal import Journal
from lj_image.release.means import Means
from lj_image.release.outcome import RERUN_HINT, Carried, Result, Wishes, pushed_entry
from lj_image.release.record import Pushed, Record, Records
from lj_image.release.references import Target
from lj_image.release.source import Promise


def carry(
    content: Content,
    places: Sequence[Target],
    wishes: Wishes,
    means: Means,
    settled: Callable[[Result], None] = lambda result: None,
) -> tuple[Result, ...]:
    """Publish content at every target, and say what became of each, in their order; raises Interrupted on Ctrl-C.

    `settled` is told of each that has it, as soon as it has, from any thread.

    Raises ArtifactError where the content itself is damaged: then nothing was tagged anywhere.
    """
    with ExitStack() as opened:
        distinct = {target.sent_to: target for target in reversed(places)}
        asked = tuple(_place(target, means, opened) for target in reversed(distinct.values()))
        targets_of = dict(zip(asked, reversed(distinct.values()), strict=True))
        try:
            placed = means.publish(
                content,
                asked,
                all_or_nothing=wishes.all_or_nothing,
                force_tag=wishes.force_tag,
                dry_run=wishes.dry_run,
                watcher=means.watcher,
                journal=_journal(means, opened),
                placed=lambda found: settled(_result(targets_of[found.place], found)),
            )
        except KeyboardInterrupt:
            raise Interrupted("interrupted: no tag moved to what is not complete", hint=RERUN_HINT) from None
    by_place = dict(zip(reversed(distinct), placed, strict=True))
    return tuple(_result(target, by_place[target.sent_to]) for target in places)


def _journal(means: Means, opened: ExitStack) -> Journal | None:
    """Return the journal; None where another process has it: uploads begin anew then."""
    journal = Journal.open(means.state_dir) if means.state_dir else None
    return opened.enter_context(journal) if journal else None


def _place(target: Target, means: Means, opened: ExitStack) -> Place:
    reference = Reference.parse(target.sent_to).tagged()
    endpoint = target.endpoint
    registry = means.open_registry(reference.host, intent="push", capabilities=endpoint.capabilities)
    destination = Destination(name_of(target), opened.enter_context(registry), reference.repository, target.store)
    return Place(destination, tuple(dict.fromkeys((reference.wanted, *endpoint.moving_tags))))


def name_of(target: Target) -> str:
    """Return how people call a target: its region, `public`, or host and repository."""
    endpoint = target.endpoint
    return endpoint.region or ("public" if endpoint.network == "public" else Reference.parse(target.reference).name)


def _result(target: Target, placed: Placed) -> Result:
    error, delivery = placed.error, placed.delivery
    moved = (f"{tag} moved from {digest}" for tag, digest in placed.previous.items())
    return Result(
        target,
        placed.state,
        None if placed.digest is None else str(placed.digest),
        error.message if error else "; ".join(moved),
        error.hint if error else None,
        Carried(delivery.sent_bytes, delivery.mounted_bytes, delivery.existing_bytes, delivery.seconds)
        if delivery
        else None,
        {tag: str(digest) for tag, digest in placed.previous.items()},
        placed.notes,
    )


def keep(results: Iterable[Result], promise: Promise, records: Records, key: str) -> None:
    """Put what has the image in the record that promises it; raises LjImageError for a damaged record."""
    for result in results:
        if result.state in ("published", "already") and result.digest == str(promise.digest):
            entry = pushed_entry(result, result.digest, promise.image_id, verified=promise.proven)
            records.update(key, partial(_with, entry=entry))


def _with(record: Record | None, *, entry: Pushed) -> Record:
    assert record is not None, "a promise is a record's"
    return record.with_pushed(entry)
