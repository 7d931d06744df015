"""One transfer: which blob goes when to which destinations, in which threads, and the end of all of them.

One thread decides, the caller's; others do what takes time, and tell it by events. So nothing here needs a lock.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

import httpx

from lj_image.errors import LjImageError, PublishError
from lj_image.oci.content import Blob
from lj_image.registry.client import Registry
from lj_image.registry.connection import CutOff
from lj_image.registry.transfer.asking import Found, ask_for_all
from lj_image.registry.transfer.body import Abandoned, FeedBody
from lj_image.registry.transfer.delivery import Destination, Transfer, TransferWatcher
from lj_image.registry.transfer.feed import Feed
from lj_image.registry.transfer.lane import Lane
from lj_image.registry.transfer.pace import Member, Pace
from lj_image.registry.transfer.source import BLOCK_BYTES, Source, UnreadableSource
from lj_image.registry.transfer.stores import Stores
from lj_image.registry.uploading.journal import Journal
from lj_image.registry.uploading.upload import Arrival, bring_blob, upload

_T = TypeVar("_T")
_Event = Callable[[], object]
_LOOK_S: Final = 0.05
"""How often is looked who is waited for, while somebody is."""
_GATHERING_S: Final = 0.25
_GATHERING_MOST_S: Final = 3.0
_GATHERING_BYTES_PER_S: Final = 2_000_000_000
"""Who lacks much may wait a little longer for the others to answer: it is less than a part of what sending takes."""
_ALONE_WINDOW_BYTES: Final = BLOCK_BYTES
"""For one that goes by itself: nobody waits for it, and what it has to take back it reads again."""
_OPEN_PER_SLOT: Final = 3
"""So many blobs for each that is sent at once may be on their way to one destination, most of them being closed."""


@dataclass(eq=False)
class _Task:
    """A blob on its way to some destinations."""

    source: Source
    feed: Feed
    is_in_step: bool
    open: set[Lane] = field(default_factory=set)
    takes: set[Lane] = field(default_factory=set)
    """Those that have not yet been given all blocks."""
    has_arrived: bool = False
    """Anywhere."""

    @property
    def is_passed(self) -> bool:
        """Whether the next blob may begin: all in step were given all of this one, and one of them has closed it."""
        followed = [lane for lane in self.open if lane.is_in_step]
        return not followed or (self.has_arrived and not any(lane in self.takes for lane in followed))


class Run:
    """One transfer of blobs to destinations."""

    def __init__(
        self,
        blobs: Sequence[Blob],
        destinations: Sequence[Destination],
        watcher: TransferWatcher,
        journal: Journal | None,
        sources: Iterable[Registry],
        *,
        window_bytes: int,
        parallel: int,
    ) -> None:
        self._watcher, self._journal = watcher, journal
        self._window_bytes, self._parallel = window_bytes, parallel
        self._events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
        self._order = sorted(
            dict.fromkeys(blobs), key=lambda blob: (-blob.descriptor.size_bytes, str(blob.descriptor.digest))
        )
        self._sources = {blob: Source(blob) for blob in self._order}
        self._lanes = [Lane(destination) for destination in destinations]
        members = [lane.member for lane in self._lanes]
        self._pace = Pace(members, lambda member: self._events.put(partial(self._left, member)))
        self._registries = {*(destination.registry for destination in destinations), *sources}
        self._stores = Stores()
        self._tasks: set[_Task] = set()
        self._threads: set[threading.Thread] = set()
        self._seconds: dict[Lane, float] = {}
        self._began = self._pace.now()
        self._begins_at: float | None = None
        """When those that have answered begin without the others."""
        self._holders: list[Lane] = []
        """Those in step that have so many blobs on their way that the others wait for them."""
        self._is_over = False

    def finished(self) -> Transfer:
        """Bring everything everywhere; raises ArtifactError for a damaged blob, and what the caller's thread is told.

        No thread is left behind.
        """
        try:
            for lane in self._lanes:
                self._start(f"ask {lane.destination.name}", partial(self._ask, lane))
            while not all(lane in self._seconds for lane in self._lanes):
                self._take_events()
                self._schedule()
                self._settle()
        except BaseException:
            self._cut_off()
            raise
        finally:
            self._wait_for_threads()
        sources = self._sources.values()
        return Transfer(
            tuple(lane.delivery(self._seconds[lane]) for lane in self._lanes),
            sum(source.read_bytes for source in sources),
            sum(source.reread_bytes for source in sources),
        )

    # What takes time, in threads of its own; each returns what is to be done then by the thread that decides.

    def _start(self, name: str, work: Callable[[], _Event]) -> None:
        def run() -> None:
            try:
                event = work()
            except BaseException as error:  # who dies unheard would be waited for for ever
                event = partial(_raise, error)
            self._events.put(event)
            self._events.put(partial(self._joined, thread))

        thread = threading.Thread(target=run, name=name)
        self._threads.add(thread)
        thread.start()

    def _ask(self, lane: Lane) -> _Event:
        found = _outcome(lane, lambda: ask_for_all(lane.destination, self._order, partial(self._is_given_up, lane)))
        return partial(self._answered, lane, found)

    def _bring(self, task: _Task, lane: Lane, origin: str | None) -> _Event:
        destination, member = lane.destination, lane.member
        body = FeedBody(
            task.source,
            task.feed,
            member,
            advances=partial(self._watcher.advances, destination),
            passes=lambda: self._events.put(partial(self._passed, task, lane)),
            is_given_up=partial(self._is_given_up, lane),
        )

        def brought() -> Arrival:
            registry, repository = destination.registry, destination.repository
            if origin is not None:
                return bring_blob(registry, repository, body, origin=origin, journal=self._journal)
            return upload(registry, repository, body, journal=self._journal)

        outcome = _outcome(lane, brought)
        task.feed.leave(member)
        if isinstance(outcome, Arrival):
            body.ends()
        return partial(self._ended, task, lane, outcome)

    def _is_given_up(self, lane: Lane) -> bool:
        return self._is_over or lane.error is not None

    # What came of it.

    def _take_events(self) -> None:
        since, holders = self._pace.now(), self._holders
        with suppress(queue.Empty):
            self._events.get(timeout=_LOOK_S if holders or self._is_gathering() else None)()
            while True:
                self._events.get_nowait()()
        if holders:
            held = [lane.member for lane in holders]
            waiting = [lane.member for lane in self._lanes if lane.is_in_step and lane not in holders]
            self._pace.waited(held, waiting, len(waiting), since)

    def _answered(self, lane: Lane, found: Mapping[Blob, Found] | LjImageError | None) -> None:
        if found is None or isinstance(found, LjImageError):
            lane.fails(found or PublishError("nothing was asked"))
            return
        lane.answers(found, self._order)
        for blob, way in found.items():
            if way != "missing":
                self._stores.arrived(lane.destination, blob)
        lacking_bytes = sum(blob.descriptor.size_bytes for blob in lane.lacks)
        self._watcher.expects(lane.destination, lacking_bytes)
        self._gathers(lane, lacking_bytes)

    def _gathers(self, lane: Lane, lacking_bytes: int) -> None:
        """Let the first that lacks something wait a while for the others, and who comes later go by itself."""
        now = self._pace.now()
        if self._begins_at is None and lane.lacks:
            more_s = min(_GATHERING_MOST_S, _GATHERING_S + lacking_bytes / _GATHERING_BYTES_PER_S)
            self._begins_at = now + max(more_s, now - self._began)
        elif self._begins_at is not None and now > self._begins_at:
            lane.member.is_in_step = False

    def _passed(self, task: _Task, lane: Lane) -> None:
        task.takes.discard(lane)
        task.feed.forget()

    def _ended(self, task: _Task, lane: Lane, outcome: Arrival | LjImageError | None) -> None:
        blob = task.source.blob
        lane.open -= 1
        task.open.discard(lane)
        if isinstance(outcome, Arrival):
            task.has_arrived = True
            lane.arrives(blob, outcome)
            self._stores.arrived(lane.destination, blob)
        elif outcome is not None:
            lane.fails(outcome)
        self._stores.ended(lane.destination, blob)
        if not task.open:
            task.feed.close()
            self._tasks.discard(task)

    def _left(self, member: Member) -> None:
        lane = next(lane for lane in self._lanes if lane.member is member)
        self._watcher.says(lane.destination, "goes at another pace than the others, and from now on by itself")

    def _joined(self, thread: threading.Thread) -> None:
        thread.join()
        self._threads.discard(thread)

    # What is done next.

    def _is_gathering(self) -> bool:
        """Say whether those that have answered still wait for the others to answer."""
        if all(lane.is_asked or lane.error is not None for lane in self._lanes):
            return False
        return self._begins_at is None or self._pace.now() < self._begins_at

    def _schedule(self) -> None:
        self._holders = []
        if self._is_gathering():
            return
        for lane in self._lanes:
            self._mount(lane)
        while sum(task.is_in_step and not task.is_passed for task in self._tasks) < self._parallel:
            if not self._begin_in_step():
                break
        for lane in self._lanes:
            if not lane.is_in_step:
                self._begin_alone(lane)

    def _mount(self, lane: Lane) -> None:
        """Let a destination have what a neighbour has been sent."""
        for blob in tuple(lane.lacks):
            origin = self._stores.origin(lane.destination, blob)
            if origin is not None and lane.open < self._parallel * _OPEN_PER_SLOT:
                self._begin(blob, [lane], origin=origin)

    def _begin_in_step(self) -> bool:
        """Begin with the next blob at all in step that lack it; say whether there was one that could begin."""
        for blob in self._order:
            takers = [lane for lane in self._lanes if lane.is_in_step and self._may_begin(lane, blob)]
            if not takers:
                continue
            self._holders = [lane for lane in takers if lane.open >= self._parallel * _OPEN_PER_SLOT]
            if self._holders:
                return False
            self._begin(blob, takers, is_in_step=True)
            return True
        return False

    def _begin_alone(self, lane: Lane) -> None:
        for blob in tuple(lane.lacks):
            if lane.open >= self._parallel:
                return
            if self._may_begin(lane, blob):
                self._begin(blob, [lane])

    def _may_begin(self, lane: Lane, blob: Blob) -> bool:
        return blob in lane.lacks and not self._stores.is_awaited(lane.destination, blob)

    def _begin(self, blob: Blob, lanes: Iterable[Lane], *, is_in_step: bool = False, origin: str | None = None) -> None:
        """Bring a blob to destinations, but to one alone of those that share a store."""
        source = self._sources[blob]
        takers: list[Lane] = []
        for lane in lanes:
            if not self._stores.is_awaited(lane.destination, blob):
                takers.append(lane)
                self._stores.begun(lane.destination, blob)
        window_bytes = self._window_bytes if is_in_step else min(_ALONE_WINDOW_BYTES, self._window_bytes)
        feed = Feed(source, (lane.member for lane in takers), self._pace, window_bytes)
        task = _Task(source, feed, is_in_step, set(takers), set(takers))
        self._tasks.add(task)
        for lane in takers:
            lane.open += 1
            del lane.lacks[blob]
            self._start(f"send to {lane.destination.name}", partial(self._bring, task, lane, origin))

    def _settle(self) -> None:
        for lane in self._lanes:
            if lane.has_ended and lane not in self._seconds:
                self._seconds[lane] = self._pace.now() - self._began
                self._watcher.settles(lane.destination, lane.error)

    # The end.

    def _cut_off(self) -> None:
        self._is_over = True
        for task in self._tasks:
            task.feed.fail(CutOff())
        for registry in self._registries:
            registry.connection.cut_off()

    def _wait_for_threads(self) -> None:
        for thread in self._threads:
            if thread.ident is not None:  # an interrupt may come before it is started
                thread.join()
        for task in self._tasks:
            task.feed.close()


def _outcome(lane: Lane, work: Callable[[], _T]) -> _T | LjImageError | None:
    """Return what a piece of work gives, or why its destination fails; None where it was given up already.

    Raises ArtifactError for a damaged blob, which is the end of all, and what nobody expected.
    """
    host = lane.destination.registry.host
    try:
        return work()
    except Abandoned:
        return None
    except UnreadableSource:
        raise
    except LjImageError as error:
        return error
    except CutOff:
        return PublishError(f"{host} was cut off", hint="run the same command again: what is there stays there")
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:  # addresses and numbers that are none
        return PublishError(f"{host} answers what cannot be understood: {type(error).__name__}")


def _raise(error: BaseException) -> None:
    raise error
