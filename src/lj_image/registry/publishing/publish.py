"""Content -> places: blobs everywhere, then documents, then tags, and each tag is read back.

A place gets its tags as soon as it is complete, or, where all or none are to have them, when every place is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

from lj_image.errors import LjImageError, PublishError
from lj_image.oci.capabilities import Capabilities
from lj_image.oci.content import Blob, Content
from lj_image.registry.connection import CutOff
from lj_image.registry.publishing.attached import put_referrers
from lj_image.registry.publishing.documents import put_documents
from lj_image.registry.publishing.fitting import Fitted, fitted
from lj_image.registry.publishing.place import Place, Placed
from lj_image.registry.publishing.tags import Held, ask, decide, set_tags
from lj_image.registry.transfer.delivery import UNWATCHED, Delivery, Destination, TransferWatcher
from lj_image.registry.transfer.transfer import transfer
from lj_image.registry.uploading.journal import Journal

PARALLEL: Final = 3
"""Blobs at once."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A place before anything is sent there."""

    placed: Placed
    fitted: Fitted | None = None
    held: Held | None = None

    @property
    def lacks_content(self) -> bool:
        """Whether blobs and documents have to be brought; a tag that stands for them says that they are there."""
        if self.placed.state != "planned" or self.fitted is None or self.held is None:
            return False
        return self.fitted.content.root.descriptor.digest not in self.held.digests.values()

    @property
    def may_lack_referrers(self) -> bool:
        """Whether a place that has the image has to be asked for what is said of it, which may be newer."""
        return self.placed.state == "already" and self.fitted is not None and bool(self.fitted.content.referrers)


def publish_content(
    content: Content,
    places: Sequence[Place],
    *,
    all_or_nothing: bool = False,
    force_tag: bool = False,
    dry_run: bool = False,
    watcher: TransferWatcher = UNWATCHED,
    journal: Journal | None = None,
    parallel: int = PARALLEL,
    placed: Callable[[Placed], None] = lambda found: None,
) -> tuple[Placed, ...]:
    """Publish content at every place, and say what became of each, in their order.

    `placed` is told of each that has its tags, as soon as it has, from any thread.

    What one place meets changes nothing elsewhere. Raises ArtifactError where the content itself is damaged: then no
    tag stands for it; KeyboardInterrupt, after which no tag stands for what is not complete.
    """
    if not places:
        return ()
    with ThreadPoolExecutor(len(places), "publish") as pool:
        try:
            asked = tuple(pool.map(_Asking(content, force_tag=force_tag), places))
            if dry_run:
                return tuple(item.placed for item in asked)
            if all_or_nothing and any(item.placed.state in ("refused", "failed") for item in asked):
                return tuple(_withheld(item.placed) for item in asked)
            return _Run(asked, pool, watcher, placed, hold=all_or_nothing).finished(journal, parallel)
        except BaseException:
            for place in places:
                place.destination.registry.connection.cut_off()
            raise


class _Asking:
    """Fits content to places and asks for their tags."""

    def __init__(self, content: Content, *, force_tag: bool) -> None:
        self._content, self._force_tag = content, force_tag
        self._fitted: dict[Capabilities, Fitted] = {}

    def __call__(self, place: Place) -> _Asked:
        try:
            fit = fitted(self._content, place.destination.registry.capabilities)
        except LjImageError as error:
            return _Asked(Placed(place, "refused", error=error))
        fit = self._fitted.setdefault(place.destination.registry.capabilities, fit)
        try:
            held = ask(place)
        except LjImageError as error:
            return _Asked(Placed(place, "failed", error=error))
        except CutOff:
            return _Asked(Placed(place, "failed", error=PublishError("it was cut off")))
        wanted = fit.content.root.descriptor.digest
        state, refusal = decide(held, wanted, force_tag=self._force_tag)
        own = held.digests[place.tags[0]]
        return _Asked(Placed(place, state, own, held.moved(wanted), None, fit.notes, refusal), fit, held)


class _Run:
    """One run over the places that lack something."""

    def __init__(
        self,
        asked: Sequence[_Asked],
        pool: ThreadPoolExecutor,
        watcher: TransferWatcher,
        placed: Callable[[Placed], None],
        *,
        hold: bool,
    ) -> None:
        self._placed = placed
        self._asked, self._pool, self._watcher, self._hold = asked, pool, watcher, hold
        self._by_destination = {item.placed.place.destination: item for item in asked}
        self._ready: dict[Destination, Future[_Asked]] = {}

    def finished(self, journal: Journal | None, parallel: int) -> tuple[Placed, ...]:
        """Bring everything everywhere, and set the tags."""
        wanting = [item for item in self._asked if item.lacks_content]
        deliveries = self._brought(wanting, journal, parallel)
        for item in self._asked:
            if item.may_lack_referrers or (item.placed.state == "planned" and not item.lacks_content):
                self._complete(item.placed.place.destination)
        complete = {destination: ready.result() for destination, ready in self._ready.items()}
        results = [self._result(item, complete, deliveries) for item in self._asked]
        if not self._hold:
            return tuple(results)
        if any(result.state in ("failed", "refused") for result in results):
            return tuple(_withheld(result) for result in results)
        untagged = (item for item in complete.values() if item.placed.state != "already")
        tagged = self._pool.map(self._tagged, untagged)
        by_place = {item.placed.place.destination: item.placed for item in tagged}
        return tuple(
            replace(by_place.get(result.place.destination, result), delivery=result.delivery) for result in results
        )

    def _brought(
        self, wanting: Sequence[_Asked], journal: Journal | None, parallel: int
    ) -> dict[Destination, Delivery]:
        """Bring the blobs, those that only some places want before those that all of them do."""
        found: dict[Destination, Delivery] = {}
        groups, common = _shared(wanting)
        common = _with_origin(common, self._asked, wanting)
        for blobs, destinations in groups:
            if blobs:
                for delivery in transfer(blobs, destinations, journal=journal, parallel=parallel).deliveries:
                    found[delivery.destination] = delivery
        left = [item.placed.place.destination for item in wanting]
        able = [destination for destination in left if destination not in found or found[destination].error is None]
        if able:
            for delivery in transfer(
                common, able, watcher=_Completing(self._watcher, self._complete), journal=journal, parallel=parallel
            ).deliveries:
                found[delivery.destination] = _sum(found.get(delivery.destination), delivery)
        return found

    def _complete(self, destination: Destination) -> None:
        """Go on with a place whose blobs are there, beside those that are still at it."""
        self._ready[destination] = self._pool.submit(self._with_documents, self._by_destination[destination])

    def _with_documents(self, item: _Asked) -> _Asked:
        assert item.fitted is not None
        destination, found = item.placed.place.destination, item

        def say(words: str) -> None:
            self._watcher.says(destination, words)

        try:
            if item.lacks_content:
                stored = put_documents(destination, item.fitted, say)
                found = replace(item, fitted=stored, placed=replace(item.placed, notes=stored.notes))
            assert found.fitted is not None
            attached = put_referrers(destination, found.fitted, say)
            found = replace(found, fitted=attached, placed=replace(found.placed, notes=attached.notes))
            return found if self._hold or found.placed.state == "already" else self._tagged(found)
        except LjImageError as error:
            return replace(found, placed=_failed(found.placed, error))
        except CutOff:
            return replace(found, placed=_failed(found.placed, PublishError("it was cut off")))

    def _tagged(self, item: _Asked) -> _Asked:
        assert item.fitted is not None
        assert item.held is not None
        destination, root = item.placed.place.destination, item.fitted.content.root
        try:
            set_tags(item.placed.place, root, item.held)
        except LjImageError as error:
            self._watcher.settles(destination, error)
            return replace(item, placed=_failed(item.placed, error))
        except CutOff:
            return replace(item, placed=_failed(item.placed, PublishError("it was cut off")))
        self._watcher.settles(destination, None)
        done = replace(item.placed, state="published", digest=root.descriptor.digest)
        self._placed(done)
        return replace(item, placed=done)

    def _result(
        self, item: _Asked, complete: dict[Destination, _Asked], deliveries: dict[Destination, Delivery]
    ) -> Placed:
        destination = item.placed.place.destination
        delivery = deliveries.get(destination)
        placed = complete.get(destination, item).placed
        if delivery is not None and delivery.error is not None:
            placed = _failed(placed, delivery.error)
        return replace(placed, delivery=delivery)


class _Completing:
    """Passes on what a transfer tells, and begins with documents where the blobs are there."""

    def __init__(self, watcher: TransferWatcher, complete: Callable[[Destination], None]) -> None:
        self._watcher, self._complete = watcher, complete

    def expects(self, destination: Destination, total_bytes: int) -> None:
        self._watcher.expects(destination, total_bytes)

    def advances(self, destination: Destination, by_bytes: int) -> None:
        self._watcher.advances(destination, by_bytes)

    def says(self, destination: Destination, words: str) -> None:
        self._watcher.says(destination, words)

    def settles(self, destination: Destination, error: LjImageError | None) -> None:
        if error is None:
            self._complete(destination)
        else:
            self._watcher.settles(destination, error)


def _shared(wanting: Sequence[_Asked]) -> tuple[list[tuple[list[Blob], list[Destination]]], list[Blob]]:
    """Return the blobs that only some places want, by those places, and the blobs that all of them do."""
    by_content: dict[Content, list[Destination]] = {}
    for item in wanting:
        assert item.fitted is not None
        by_content.setdefault(item.fitted.content, []).append(item.placed.place.destination)
    sets = [{blob.descriptor.digest for blob in content.blobs} for content in by_content]
    common = set.intersection(*sets) if sets else set()
    groups = [
        ([blob for blob in content.blobs if blob.descriptor.digest not in common], destinations)
        for content, destinations in by_content.items()
    ]
    first = next(iter(by_content), None)
    return groups, [blob for blob in first.blobs if blob.descriptor.digest in common] if first else []


def _with_origin(blobs: Sequence[Blob], asked: Sequence[_Asked], wanting: Sequence[_Asked]) -> list[Blob]:
    """Let blobs be mounted from a place that has the content already, where its registry is another's as well."""
    hosts = {item.placed.place.destination.registry.host for item in wanting}
    there = (item.placed.place.destination for item in asked if item.placed.state == "already")
    holder = next((destination for destination in there if destination.registry.host in hosts), None)
    if holder is None:
        return list(blobs)
    origin = f"{holder.registry.host}/{holder.repository}"
    return [replace(blob, origin=blob.origin or origin) for blob in blobs]


def _sum(first: Delivery | None, second: Delivery) -> Delivery:
    if first is None:
        return second
    return replace(
        second,
        sent=first.sent + second.sent,
        sent_bytes=first.sent_bytes + second.sent_bytes,
        mounted=first.mounted + second.mounted,
        mounted_bytes=first.mounted_bytes + second.mounted_bytes,
        existing=first.existing + second.existing,
        existing_bytes=first.existing_bytes + second.existing_bytes,
        seconds=first.seconds + second.seconds,
    )


def _failed(placed: Placed, error: LjImageError) -> Placed:
    return replace(placed, state="failed", error=error)


def _withheld(placed: Placed) -> Placed:
    """Return what becomes of a place that is well while another is not."""
    if placed.state != "planned":
        return placed
    return replace(
        placed,
        state="withheld",
        error=PublishError(
            "no tag was set, since not every place can have it", hint="mend the others, then run the same command again"
        ),
    )
