"""Blobs to several registries in memory: each read once, one's failure its own, and an end in any case."""

from __future__ import annotations

import io
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from fake_registry import HOST, FakeRegistry, digest_of, error

from lj_image.errors import ArtifactError, LjImageError
from lj_image.oci.capabilities import Capabilities
from lj_image.oci.content import Blob
from lj_image.oci.descriptor import Descriptor
from lj_image.oci.digest import Digest
from lj_image.oci.media_types import MediaType
from lj_image.oci.source import Stream
from lj_image.registry.access import Access, Patience
from lj_image.registry.client import Registry
from lj_image.registry.transfer.delivery import Destination, Transfer
from lj_image.registry.transfer.transfer import transfer

REPOSITORY = "team/x"
LARGE = random.Random(1).randbytes(3_000_000)
SMALL = tuple(random.Random(number).randbytes(size) for number, size in enumerate((900_000, 70_000, 1_000, 10), 2))
ALL = (LARGE, *SMALL)
TOTAL = sum(map(len, ALL))


class Shelf:
    """Where blobs lie; says what was opened, and from where."""

    def __init__(self) -> None:
        self.opened: list[tuple[bytes, int]] = []

    def blob(self, content: bytes, *, held: bytes | None = None, origin: str = "") -> Blob:
        descriptor = Descriptor(MediaType.OCI_LAYER, Digest.parse(digest_of(content)), len(content))

        def open_at(offset: int) -> Stream:
            self.opened.append((content, offset))
            return io.BytesIO((content if held is None else held)[offset:])

        return Blob(descriptor, open_at, origin)


class Seen:
    """A watcher that keeps what it sees."""

    def __init__(self) -> None:
        self.expected: dict[str, int] = {}
        self.at: dict[str, int] = {}
        self.said: list[tuple[str, str]] = []
        self.settled: list[tuple[str, LjImageError | None]] = []

    def expects(self, destination: Destination, total_bytes: int) -> None:
        self.expected[destination.name] = total_bytes

    def advances(self, destination: Destination, by_bytes: int) -> None:
        with threading.Lock():
            self.at[destination.name] = self.at.get(destination.name, 0) + by_bytes

    def says(self, destination: Destination, words: str) -> None:
        self.said.append((destination.name, words))

    def settles(self, destination: Destination, error: LjImageError | None) -> None:
        self.settled.append((destination.name, error))


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    before = threading.active_count()
    yield
    assert threading.active_count() == before


def place(
    fake: FakeRegistry, name: str, *, repository: str = REPOSITORY, store: str | None = None, **options: Any
) -> Destination:
    capabilities = Capabilities(upload="put", **options)
    registry = Registry(
        Access(HOST, patience=Patience(attempts=3)),
        intent="push",
        capabilities=capabilities,
        credentials=lambda _: None,
        transport=fake.transport(),
        environ={},
        sleep=lambda _: None,
    )
    return Destination(name, registry, repository, name if store is None else store)


def places(*fakes: FakeRegistry) -> list[Destination]:
    return [place(fake, f"place-{number}") for number, fake in enumerate(fakes)]


def held(fake: FakeRegistry, repository: str = REPOSITORY) -> set[bytes]:
    return set(fake.blobs.get(repository, {}).values())


def moved(transferred: Transfer) -> list[tuple[int, int, int]]:
    return [(item.sent, item.mounted, item.existing) for item in transferred.deliveries]


def refusing(method: str, status: int, code: str) -> Callable[[httpx.Request], httpx.Response | None]:
    return lambda request: error(status, code) if request.method == method else None


class Always(list[Any]):
    """Interferences that are not used up."""

    def remove(self, item: Any) -> None:
        pass


def test_every_place_gets_every_blob_and_each_is_read_once() -> None:
    fakes, shelf, seen = [FakeRegistry() for _ in range(4)], Shelf(), Seen()
    found = transfer([shelf.blob(content) for content in ALL], places(*fakes), watcher=seen)
    assert [held(fake) for fake in fakes] == [set(ALL)] * 4
    assert moved(found) == [(5, 0, 0)] * 4
    assert (found.read_bytes, found.reread_bytes) == (TOTAL, 0)
    assert sorted(shelf.opened) == sorted((content, 0) for content in ALL)
    assert seen.expected == seen.at == {f"place-{number}": TOTAL for number in range(4)}
    assert sorted(seen.settled) == [(f"place-{number}", None) for number in range(4)]


def test_the_largest_goes_first() -> None:
    fake, shelf = FakeRegistry(), Shelf()
    transfer([shelf.blob(content) for content in reversed(ALL)], places(fake), parallel=1)
    assert [content for content, _ in shelf.opened] == list(ALL)


def test_what_is_there_is_neither_read_nor_sent() -> None:
    fake, shelf, seen = FakeRegistry(blobs={REPOSITORY: {digest_of(item): item for item in ALL}}), Shelf(), Seen()
    found = transfer([shelf.blob(content) for content in ALL], places(fake), watcher=seen)
    assert moved(found) == [(0, 0, 5)]
    assert (found.deliveries[0].existing_bytes, found.read_bytes, shelf.opened) == (TOTAL, 0, [])
    assert fake.paths("POST") == []
    assert seen.expected == {"place-0": 0}


def test_each_place_gets_what_it_lacks() -> None:
    full = FakeRegistry(blobs={REPOSITORY: {digest_of(LARGE): LARGE}})
    fakes = [full, FakeRegistry()]
    found = transfer([Shelf().blob(content) for content in ALL], places(*fakes))
    assert moved(found) == [(4, 0, 1), (5, 0, 0)]
    assert [item.sent_bytes for item in found.deliveries] == [TOTAL - len(LARGE), TOTAL]


def test_a_blob_of_another_repository_of_the_registry_is_mounted() -> None:
    fake, shelf = FakeRegistry(blobs={"base/os": {digest_of(LARGE): LARGE}}), Shelf()
    found = transfer([shelf.blob(LARGE, origin=f"{HOST}/base/os")], places(fake))
    assert (moved(found), found.deliveries[0].mounted_bytes, shelf.opened) == ([(0, 1, 0)], len(LARGE), [])


def test_two_repositories_of_one_registry_are_sent_a_blob_once() -> None:
    fake, seen = FakeRegistry(), Seen()
    both = [place(fake, name, repository=name, store="") for name in ("one", "two")]
    found = transfer([Shelf().blob(content) for content in ALL], both, watcher=seen)
    assert moved(found) == [(5, 0, 0), (0, 5, 0)]
    assert held(fake, "two") == set(ALL)
    assert len(fake.paths("PUT")) == 5
    assert seen.at == seen.expected


def test_a_registry_that_mounts_nothing_is_sent_a_blob_for_each_repository() -> None:
    fake = FakeRegistry()
    both = [place(fake, name, repository=name, store="", mount=False) for name in ("one", "two")]
    found = transfer([Shelf().blob(content) for content in ALL], both)
    assert moved(found) == [(5, 0, 0), (5, 0, 0)]
    assert (found.read_bytes, found.reread_bytes) == (TOTAL, 0)


def test_two_names_of_one_repository_are_sent_a_blob_once() -> None:
    fake = FakeRegistry()
    found = transfer(
        [Shelf().blob(content) for content in ALL], [place(fake, "public", store="s"), place(fake, "vpc", store="s")]
    )
    assert moved(found) == [(5, 0, 0), (0, 0, 5)]


def test_where_the_first_of_a_store_fails_the_second_is_sent_the_blob() -> None:
    fake = FakeRegistry()
    fake.before = Always([lambda request: error(403, "DENIED") if "/one/" in request.url.path else None])
    both = [place(fake, name, repository=name, store="") for name in ("one", "two")]
    found = transfer([Shelf().blob(content) for content in ALL], both)
    assert found.deliveries[0].error is not None
    assert moved(found)[1] == (5, 0, 0)


@pytest.mark.parametrize(
    "interference",
    [
        refusing("HEAD", 500, "UNKNOWN"),
        refusing("POST", 403, "DENIED"),
        refusing("PUT", 400, "DIGEST_INVALID"),
        refusing("PUT", 500, "UNKNOWN"),
    ],
)
def test_one_that_fails_fails_alone(interference: Callable[[httpx.Request], httpx.Response | None]) -> None:
    good, bad, shelf, seen = FakeRegistry(), FakeRegistry(before=Always([interference])), Shelf(), Seen()
    found = transfer([shelf.blob(content) for content in ALL], places(bad, good), watcher=seen)
    assert held(good) == set(ALL)
    assert found.deliveries[1].error is None
    failure = found.deliveries[0].error
    assert failure is not None
    assert HOST in failure.message
    assert ("place-0", failure) in seen.settled
    assert len(seen.settled) == 2
    assert (found.read_bytes, found.deliveries[0].sent) == (TOTAL, 0)


def test_one_that_gives_an_address_which_is_none_fails_alone() -> None:
    good, bad = FakeRegistry(), FakeRegistry(location="http://[")
    found = transfer([Shelf().blob(content) for content in ALL], places(bad, good))
    assert found.deliveries[0].error is not None
    assert held(good) == set(ALL)


def test_all_may_fail() -> None:
    fakes = [FakeRegistry(before=Always([refusing("PUT", 403, "DENIED")])) for _ in range(3)]
    found = transfer([Shelf().blob(content) for content in ALL], places(*fakes))
    assert all(item.error is not None for item in found.deliveries)


def test_a_changed_blob_is_the_end_of_all_and_no_registry_has_it() -> None:
    fakes, shelf = [FakeRegistry(), FakeRegistry()], Shelf()
    blobs = [shelf.blob(LARGE, held=LARGE[:-1] + b"!"), *(shelf.blob(content) for content in SMALL)]
    with pytest.raises(ArtifactError, match=digest_of(LARGE)):
        transfer(blobs, places(*fakes))
    assert not any(LARGE in held(fake) for fake in fakes)


def test_what_nobody_expected_is_raised_where_it_was_asked_for() -> None:
    def broken(request: httpx.Request) -> httpx.Response | None:
        raise ZeroDivisionError

    fakes = [FakeRegistry(), FakeRegistry(before=Always([broken]))]
    with pytest.raises(ZeroDivisionError):
        transfer([Shelf().blob(content) for content in ALL], places(*fakes))


@pytest.mark.parametrize("method", ["expects", "advances", "settles"])
def test_a_watcher_that_breaks_leaves_no_thread(method: str) -> None:
    def broken(*arguments: object) -> None:
        raise ZeroDivisionError

    seen = Seen()
    setattr(seen, method, broken)
    with pytest.raises(ZeroDivisionError):
        transfer([Shelf().blob(content) for content in ALL], places(FakeRegistry(), FakeRegistry()), watcher=seen)


def test_an_interrupt_cuts_everything_off() -> None:
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    def slow(request: httpx.Request) -> httpx.Response | None:
        if request.method == "HEAD":
            time.sleep(0.05)
        return None

    seen = Seen()
    seen.expects = interrupt  # type: ignore[method-assign]
    fakes = [FakeRegistry(), FakeRegistry(before=Always([slow]))]
    with pytest.raises(KeyboardInterrupt):
        transfer([Shelf().blob(content) for content in ALL], places(*fakes), watcher=seen)
    assert [fake.paths("PUT") for fake in fakes] == [[], []]


def test_one_that_answers_late_goes_by_itself_and_holds_nobody_up() -> None:
    finished: dict[str, float] = {}
    asked: list[httpx.Request] = []
    started = time.monotonic()

    def late(request: httpx.Request) -> httpx.Response | None:
        if request.method == "HEAD" and not asked:
            asked.append(request)
            time.sleep(1.5)
        return None

    class Timed(Seen):
        def settles(self, destination: Destination, error: LjImageError | None) -> None:
            finished[destination.name] = time.monotonic() - started

    fakes = [FakeRegistry(before=Always([late])), FakeRegistry()]
    found = transfer([Shelf().blob(content) for content in ALL], places(*fakes), watcher=Timed())
    assert finished["place-1"] < 1.5 <= finished["place-0"]
    assert [held(fake) for fake in fakes] == [set(ALL)] * 2
    assert found.reread_bytes == TOTAL


def test_one_whose_uploads_are_slow_to_close_delays_the_others_by_little() -> None:
    many = [random.Random(number).randbytes(2_000) for number in range(60)]

    def slow(request: httpx.Request) -> httpx.Response | None:
        if request.method == "PUT":
            time.sleep(0.1)
        return None

    seconds = {}
    for fakes in ([FakeRegistry()], [FakeRegistry(), FakeRegistry(before=Always([slow]))]):
        found = transfer([Shelf().blob(content) for content in many], places(*fakes))
        seconds[len(fakes)] = found.deliveries[0].seconds
        assert [held(fake) for fake in fakes] == [set(many)] * len(fakes)
    assert seconds[2] < seconds[1] + 1.0
    assert found.deliveries[1].seconds > 60 * 0.1 / 9


def test_nothing_to_bring_is_settled_at_once() -> None:
    seen = Seen()
    found = transfer([], places(FakeRegistry()), watcher=seen)
    assert (found.deliveries[0].error, found.read_bytes, seen.settled) == (None, 0, [("place-0", None)])
    assert transfer([Shelf().blob(LARGE)], []).deliveries == ()


def test_a_blob_that_is_named_twice_goes_once() -> None:
    fake, blob = FakeRegistry(), Shelf().blob(LARGE)
    assert moved(transfer([blob, replace(blob)], places(fake))) == [(1, 0, 0)]


def test_a_registry_that_refuses_the_question_is_sent_the_blob() -> None:
    fake = FakeRegistry(before=Always([refusing("HEAD", 403, "DENIED")]))
    assert moved(transfer([Shelf().blob(content) for content in ALL], places(fake))) == [(5, 0, 0)]


def test_one_pool_of_memory_is_asked_for_where_there_are_several() -> None:
    code = (
        "from lj_image.registry.transfer.memory import share_one_pool; import ctypes, threading; share_one_pool()\n"
        "threads = [threading.Thread(target=lambda: bytearray(300_000)) for _ in range(8)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "ctypes.CDLL(None).malloc_stats()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if "malloc_stats" in done.stderr:
        pytest.skip("another C library")
    assert "Arena 1:" not in done.stderr
