"""One blob's blocks for several takers: read once, in order, bounded, and never all of a wrong blob."""

from __future__ import annotations

import hashlib
import io
import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from lj_image.errors import ArtifactError
from lj_image.oci.content import Blob
from lj_image.oci.descriptor import Descriptor
from lj_image.oci.digest import Digest
from lj_image.oci.source import Stream
from lj_image.registry.faults import RegistryError
from lj_image.registry.transfer.body import Abandoned, FeedBody
from lj_image.registry.transfer.feed import Feed
from lj_image.registry.transfer.pace import Member, Pace
from lj_image.registry.transfer.source import BLOCK_BYTES, Source, UnreadableSource

BLOCKS = 40
CONTENT = random.Random(7).randbytes(BLOCKS * BLOCK_BYTES - 1000)
DESCRIPTOR = Descriptor(
    "application/vnd.oci.image.layer.v1.tar",
    Digest.parse(f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"),
    len(CONTENT),
)
WINDOW_BYTES = 4 * BLOCK_BYTES


class Shelf:
    """Where the blob lies; says where it was opened, and how much was read."""

    def __init__(self, content: bytes = CONTENT) -> None:
        self.content = content
        self.opened: list[int] = []
        self.closed = 0
        self.read_bytes = 0
        self.before: Callable[[int], None] = lambda at_byte: None

    def open_at(self, offset: int) -> Stream:
        self.opened.append(offset)
        return Opened(self, offset)

    def source(self) -> Source:
        return Source(Blob(DESCRIPTOR, self.open_at))


class Opened(io.BytesIO):
    def __init__(self, shelf: Shelf, offset: int) -> None:
        super().__init__(shelf.content)
        self.seek(offset)
        self.shelf = shelf

    def read(self, size: int | None = -1, /) -> bytes:
        self.shelf.before(self.tell())
        content = super().read(min(size or 0, 100_000))  # as sockets do, fewer than asked for
        self.shelf.read_bytes += len(content)
        return content

    def close(self) -> None:
        self.shelf.closed += 1
        super().close()


class Setting:
    """A feed for some members."""

    def __init__(self, names: str, shelf: Shelf | None = None, window_bytes: int = WINDOW_BYTES) -> None:
        self.shelf = shelf or Shelf()
        self.source = self.shelf.source()
        self.members = [Member(name) for name in names]
        self.left: list[str] = []
        self.pace = Pace(self.members, lambda member: self.left.append(member.name))
        self.feed = Feed(self.source, self.members, self.pace, window_bytes)
        self.moves: list[int] = []
        self.passed: list[str] = []

    def body(self, number: int, is_given_up: Callable[[], bool] = lambda: False) -> FeedBody:
        member = self.members[number]
        return FeedBody(
            self.source,
            self.feed,
            member,
            advances=self.moves.append,
            passes=lambda: self.passed.append(member.name),
            is_given_up=is_given_up,
        )

    def sizes(self, number: int, sizes: list[int]) -> None:
        """Take all of it, and keep the size of each piece."""
        sizes.extend(map(len, self.body(number).pieces(0, len(CONTENT))))

    def taken(self, number: int, wait_s: float = 0.0) -> bytes:
        """Take all of it, with a wait after each block."""
        parts = []
        for piece in self.body(number).pieces(0, len(CONTENT)):
            parts.append(piece)
            time.sleep(wait_s)
        self.feed.leave(self.members[number])
        return b"".join(parts)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


def test_six_takers_get_every_byte_and_it_is_read_once(pool: ThreadPoolExecutor) -> None:
    setting = Setting("abcdef")
    assert all(content == CONTENT for content in pool.map(setting.taken, range(6)))
    assert (setting.shelf.opened, setting.shelf.read_bytes) == ([0], len(CONTENT))
    assert (setting.source.read_bytes, setting.source.reread_bytes) == (len(CONTENT), 0)
    assert sorted(setting.passed) == list("abcdef")


def test_who_is_ahead_gets_no_further_than_the_window() -> None:
    setting = Setting("ab")
    taken: list[int] = []

    def hurry() -> None:
        for _ in setting.body(0).pieces(0, len(CONTENT)):
            taken.append(1)

    thread = threading.Thread(target=hurry)
    thread.start()
    time.sleep(0.1)
    assert len(taken) == WINDOW_BYTES // BLOCK_BYTES
    setting.feed.leave(setting.members[1])
    thread.join()
    assert len(taken) == BLOCKS


def test_one_that_takes_nothing_is_left_behind_soon_and_reads_by_itself(pool: ThreadPoolExecutor) -> None:
    setting = Setting("abc")
    started = time.monotonic()
    fast = [pool.submit(setting.taken, 0), pool.submit(setting.taken, 1)]
    assert all(future.result() == CONTENT for future in fast)
    assert time.monotonic() - started < 2
    assert setting.left == ["c"]
    assert setting.taken(2) == CONTENT
    assert setting.source.reread_bytes <= len(CONTENT)
    assert setting.shelf.opened == [0, 0]


def test_one_that_is_slow_in_the_middle_reads_only_its_rest_again(pool: ThreadPoolExecutor) -> None:
    setting = Setting("ab")
    slow = pool.submit(setting.taken, 1, 0.04)
    assert setting.taken(0) == CONTENT
    assert slow.result() == CONTENT
    assert setting.left == ["b"]
    assert 0 < setting.source.reread_bytes < len(CONTENT)
    assert len(setting.shelf.opened) == 2


def test_what_is_taken_back_comes_from_the_window_while_it_is_there() -> None:
    setting = Setting("a")
    body = setting.body(0)
    first = b"".join(body.pieces(0, 3 * BLOCK_BYTES))
    again = b"".join(body.pieces(BLOCK_BYTES + 17, 3 * BLOCK_BYTES))
    assert again == first[BLOCK_BYTES + 17 :]
    assert setting.shelf.opened == [0]
    assert setting.moves[3] == -(2 * BLOCK_BYTES) + 17, "what is sent again is taken back"


def test_what_is_taken_back_from_before_the_window_is_read_by_itself() -> None:
    setting = Setting("a")
    body = setting.body(0)
    for _ in body.pieces(0, 20 * BLOCK_BYTES):
        pass
    assert b"".join(body.pieces(10, len(CONTENT))) == CONTENT[10:]
    assert setting.shelf.opened == [0, 0]
    assert setting.source.read_bytes == len(CONTENT)
    assert setting.source.reread_bytes == (20 - WINDOW_BYTES // BLOCK_BYTES) * BLOCK_BYTES


def test_an_upload_that_goes_on_late_in_the_blob_alone_has_it_digested_on_the_way() -> None:
    setting = Setting("a")
    assert b"".join(setting.body(0).pieces(30 * BLOCK_BYTES + 5, len(CONTENT))) == CONTENT[30 * BLOCK_BYTES + 5 :]
    assert setting.source.is_verified
    assert setting.shelf.opened == [0]


def test_one_that_goes_on_late_in_the_blob_waits_for_nobody_who_begins(pool: ThreadPoolExecutor) -> None:
    setting = Setting("ab")
    assert (
        b"".join(setting.body(0).pieces(30 * BLOCK_BYTES, 39 * BLOCK_BYTES))
        == CONTENT[30 * BLOCK_BYTES : 39 * BLOCK_BYTES]
    )
    assert setting.taken(1) == CONTENT
    assert setting.left == []


@pytest.mark.parametrize("at_byte", [5, 30 * BLOCK_BYTES, len(CONTENT) - 1])
def test_of_a_changed_blob_nobody_gets_the_last_block(pool: ThreadPoolExecutor, at_byte: int) -> None:
    changed = CONTENT[:at_byte] + bytes([CONTENT[at_byte] ^ 1]) + CONTENT[at_byte + 1 :]
    setting = Setting("abc", Shelf(changed))
    sizes: list[list[int]] = [[], [], []]
    for future in [pool.submit(setting.sizes, number, sizes[number]) for number in range(3)]:
        with pytest.raises(UnreadableSource, match="has other bytes than it should"):
            future.result()
    assert max(map(sum, sizes)) <= (BLOCKS - 1) * BLOCK_BYTES
    assert setting.passed == []


def test_one_by_itself_gets_the_last_block_of_no_changed_blob() -> None:
    setting = Setting("ab", Shelf(b"!" + CONTENT[1:]))
    setting.members[0].is_in_step = setting.members[1].is_in_step = False
    sizes: list[int] = []
    with pytest.raises(UnreadableSource):
        setting.sizes(0, sizes)
    assert sum(sizes) == (BLOCKS - 1) * BLOCK_BYTES


def test_a_truncated_blob_is_told_with_a_way_out() -> None:
    setting = Setting("a", Shelf(CONTENT[:-1]))
    with pytest.raises(ArtifactError) as caught:
        setting.taken(0)
    assert "build the image again" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(5, "Input/output error"), "Input/output error"),
        (RegistryError("r.example does not answer from here", hint="wait"), "r.example does not answer from here"),
    ],
)
def test_a_blob_that_cannot_be_read_fails_for_all_who_wait(
    pool: ThreadPoolExecutor, error: Exception, words: str
) -> None:
    shelf = Shelf()
    setting = Setting("abc", shelf)

    def fail(at_byte: int) -> None:
        if at_byte >= 6 * BLOCK_BYTES:
            raise error

    shelf.before = fail
    for future in [pool.submit(setting.taken, number) for number in range(3)]:
        with pytest.raises(UnreadableSource, match=words):
            future.result(timeout=5)


def test_a_reader_that_dies_of_what_nobody_expected_leaves_nobody_waiting(pool: ThreadPoolExecutor) -> None:
    shelf = Shelf()
    setting = Setting("ab", shelf)

    def fail(at_byte: int) -> None:
        if at_byte >= 2 * BLOCK_BYTES:
            raise ZeroDivisionError

    shelf.before = fail
    for future in [pool.submit(setting.taken, number) for number in range(2)]:
        with pytest.raises(ZeroDivisionError):
            future.result(timeout=5)


def test_what_is_given_up_takes_no_more() -> None:
    setting = Setting("a")
    answers = iter((False, False, True))
    pieces = iter(setting.body(0, lambda: next(answers)).pieces(0, len(CONTENT)))
    next(pieces), next(pieces)
    with pytest.raises(Abandoned):
        next(pieces)


def test_a_stream_is_closed_when_an_upload_is_over() -> None:
    setting = Setting("ab")
    setting.members[0].is_in_step = False
    pieces = iter(setting.body(0).pieces(0, len(CONTENT)))
    next(pieces)
    del pieces  # as an upload does that breaks
    assert setting.shelf.closed == 1


def test_a_blob_without_bytes_has_no_pieces() -> None:
    descriptor = Descriptor("x/y", Digest.of(b""), 0)
    source = Source(Blob(descriptor, lambda offset: io.BytesIO()))
    member = Member("a")
    feed = Feed(source, [member], Pace([member], print), WINDOW_BYTES)
    body = FeedBody(source, feed, member, advances=print, passes=print, is_given_up=lambda: False)
    assert list(body.pieces(0, 0)) == []
