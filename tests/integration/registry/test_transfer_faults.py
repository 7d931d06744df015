"""One read to several real registries, of which some are slow, stall or fail; counted by the proxies before them."""

from __future__ import annotations

import hashlib
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from lj_image.errors import ArtifactError
from lj_image.oci.capabilities import Capabilities
from lj_image.oci.content import Blob
from lj_image.oci.descriptor import Descriptor
from lj_image.oci.digest import Digest
from lj_image.oci.source import Stream
from lj_image.registry.access import Access, Patience
from lj_image.registry.client import Registry
from lj_image.registry.transfer.delivery import Destination, Unwatched
from lj_image.registry.transfer.transfer import transfer
from standins.faults import Faulty, faulty
from standins.registries import Registry as Running
from standins.registries import running

pytestmark = pytest.mark.registry

REPOSITORY = "team/image"
CHUNK_BYTES = 1 << 20
SIZES = (3_000_000, 2_000_001, 1_000_000, 70_000, 1_000)
TOTAL = sum(SIZES)
WINDOW_BYTES = 1 << 20
PATIENCE = Patience(attempts=3, idle_s=15.0, connect_s=2.0, commit_s=15.0)
IMPATIENCE = replace(PATIENCE, idle_s=1.0, commit_s=1.0)


class Files:
    """Blobs on the disk; says what was opened, and from where."""

    def __init__(self, folder: Path) -> None:
        self.opened: list[tuple[str, int]] = []
        self.paths = [folder / f"{number}.blob" for number in range(len(SIZES))]
        for number, path in enumerate(self.paths):
            path.write_bytes(random.Random(number).randbytes(SIZES[number]))
        self.digests = [f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}" for path in self.paths]
        self.blobs = [self.blob(path, digest) for path, digest in zip(self.paths, self.digests, strict=True)]

    def blob(self, path: Path, digest: str) -> Blob:
        def open_at(offset: int) -> Stream:
            self.opened.append((digest, offset))
            file = path.open("rb")
            file.seek(offset)
            return file

        descriptor = Descriptor("application/vnd.oci.image.layer.v1.tar", Digest.parse(digest), path.stat().st_size)
        return Blob(descriptor, open_at)


class Place:
    """A destination, the registry behind it, and the proxy's count."""

    def __init__(self, name: str, behind: Running, proxy: Faulty, patience: Patience = PATIENCE) -> None:
        self.behind, self.proxy = behind, proxy
        self.registry = Registry(
            Access(proxy.address, patience=patience),
            intent="push",
            capabilities=Capabilities(chunk_bytes=CHUNK_BYTES),
            credentials=lambda _: None,
        )
        self.destination = Destination(name, self.registry, REPOSITORY)

    @property
    def received_bytes(self) -> int:
        return self.proxy.received_bytes

    def has(self, digest: str) -> bool:
        answer = self.behind.get(f"{REPOSITORY}/blobs/{digest}")
        return answer.status_code == 200 and f"sha256:{hashlib.sha256(answer.content).hexdigest()}" == digest


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture
def places(tmp_path: Path) -> Iterator[Callable[..., list[Place]]]:
    """Return what starts a registry with a proxy for each list of faults."""
    with ExitStack() as stack:

        def start(*faults: tuple[str, ...], patience: Patience = PATIENCE) -> list[Place]:
            found = []
            for number, some in enumerate(faults):
                folder = tmp_path / f"registry-{number}"
                folder.mkdir()
                behind = stack.enter_context(running(folder))
                proxy = stack.enter_context(faulty(behind.address, *some))
                found.append(Place(f"place-{number}", behind, proxy, patience))
                stack.callback(found[-1].registry.close)
            return found

        yield start


@pytest.fixture
def threads() -> Iterator[None]:
    """Ask that no thread of a transfer is left."""
    yield
    left = [thread.name for thread in threading.enumerate() if thread.name.startswith(("ask", "send"))]
    assert left == []


send = partial(transfer, window_bytes=WINDOW_BYTES)


def test_each_blob_is_read_once_and_sent_once_to_each(
    places: Callable[..., list[Place]], files: Files, threads: None
) -> None:
    some = places((), (), ())
    found = send(files.blobs, [place.destination for place in some])
    assert [item.error for item in found.deliveries] == [None] * 3
    assert (found.read_bytes, found.reread_bytes) == (TOTAL, 0)
    assert sorted(files.opened) == sorted((digest, 0) for digest in files.digests)
    assert [place.received_bytes for place in some] == [TOTAL] * 3
    assert [item.sent_bytes for item in found.deliveries] == [TOTAL] * 3
    assert all(place.has(digest) for place in some for digest in files.digests)
    again = send(files.blobs, [place.destination for place in some])
    assert [(item.sent, item.existing) for item in again.deliveries] == [(0, len(SIZES))] * 3
    assert (again.read_bytes, [place.received_bytes for place in some]) == (0, [TOTAL] * 3)


def test_a_slow_one_leaves_and_what_it_lacks_is_read_again_once(
    places: Callable[..., list[Place]], files: Files, threads: None
) -> None:
    some = places((), ("slow:1500000",), ())
    found = send(files.blobs, [place.destination for place in some])
    assert [item.error for item in found.deliveries] == [None] * 3
    quick, slow, other = (item.seconds for item in found.deliveries)
    assert max(quick, other) < slow / 2
    assert found.read_bytes == TOTAL
    assert 0 < found.reread_bytes <= TOTAL
    assert max(files.opened.count((digest, 0)) for digest in files.digests) <= 2
    assert len(files.opened) <= 2 * len(SIZES)
    assert [place.received_bytes for place in some] == [TOTAL] * 3
    assert all(place.has(digest) for place in some for digest in files.digests)


def test_one_that_stalls_fails_alone_after_its_patience(
    places: Callable[..., list[Place]], files: Files, threads: None
) -> None:
    some = places((), ("stall:300000:600:0",), patience=IMPATIENCE)
    found = send(files.blobs, [place.destination for place in some])
    assert found.deliveries[0].error is None
    failure = found.deliveries[1].error
    assert failure is not None
    assert some[1].registry.host in failure.message
    assert found.deliveries[0].seconds < 3
    assert some[0].received_bytes == TOTAL


def test_one_whose_every_upload_is_cut_fails_alone(
    places: Callable[..., list[Place]], files: Files, threads: None
) -> None:
    some = places(("drop-after:200000:0",), ())
    found = send(files.blobs, [place.destination for place in some])
    failure = found.deliveries[0].error
    assert failure is not None
    assert some[0].registry.host in failure.message
    assert found.deliveries[1].error is None
    assert some[1].received_bytes == TOTAL
    assert all(some[1].has(digest) for digest in files.digests)


def test_one_that_nobody_listens_at_fails_alone(
    places: Callable[..., list[Place]], files: Files, threads: None
) -> None:
    (good,) = places(())
    access = Access("127.0.0.1:9", patience=replace(PATIENCE, attempts=2))
    with Registry(access, intent="push", credentials=lambda _: None) as nowhere:
        found = send(files.blobs, [Destination("nowhere", nowhere, REPOSITORY), good.destination])
    assert "127.0.0.1:9" in str(found.deliveries[0].error)
    assert good.received_bytes == TOTAL


@pytest.mark.parametrize("how", ["changed", "truncated"])
def test_a_blob_that_changes_while_it_is_read_is_whole_nowhere(
    places: Callable[..., list[Place]], files: Files, threads: None, how: str
) -> None:
    path, digest = files.paths[0], files.digests[0]

    class Meddler(Unwatched):
        def expects(self, destination: Destination, total_bytes: int) -> None:
            if how == "truncated":
                with path.open("r+b") as file:
                    file.truncate(SIZES[0] - 1)
            else:
                path.write_bytes(path.read_bytes()[:-1] + b"!")

    some = places((), ())
    with pytest.raises(ArtifactError, match=digest):
        send(files.blobs, [place.destination for place in some], watcher=Meddler())
    assert not any(place.has(digest) for place in some)
    assert all(place.received_bytes < TOTAL for place in some)


def test_two_publishers_of_one_image_both_succeed(
    places: Callable[..., list[Place]], files: Files, threads: None
) -> None:
    some = places((), ())
    others = [Place(f"other-{number}", place.behind, place.proxy) for number, place in enumerate(some)]
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(send, files.blobs, [place.destination for place in each]) for each in (some, others)]
        found = [future.result(60) for future in both]
    assert [item.error for each in found for item in each.deliveries] == [None] * 4
    assert all(place.has(digest) for place in some for digest in files.digests)
    assert all(TOTAL <= place.received_bytes <= 2 * TOTAL for place in some)


def test_two_repositories_of_a_registry_are_sent_a_blob_once(
    places: Callable[..., list[Place]], files: Files, threads: None
) -> None:
    (place,) = places(())
    other = Destination("other", place.registry, "team/other")
    found = send(files.blobs, [place.destination, other])
    assert [(item.sent, item.mounted) for item in found.deliveries] == [(5, 0), (0, 5)]
    assert place.received_bytes == TOTAL
    assert place.behind.get(f"team/other/blobs/{files.digests[0]}", "HEAD").status_code == 200


def test_blobs_of_a_registry_are_asked_for_once_and_go_to_the_others(
    places: Callable[..., list[Place]], files: Files, threads: None
) -> None:
    source, *some = places((), (), ())
    send(files.blobs, [source.destination])
    blobs = [
        Blob(blob.descriptor, partial(source.registry.open_blob, REPOSITORY, blob.descriptor)) for blob in files.blobs
    ]
    found = send(blobs, [place.destination for place in some], sources=[source.registry])
    assert (found.read_bytes, found.reread_bytes) == (TOTAL, 0)
    assert len(source.proxy.requests("blob-get")) == len(SIZES)
    assert all(place.has(digest) for place in some for digest in files.digests)


def test_ctrl_c_ends_uploads_that_stand_still(places: Callable[..., list[Place]], files: Files, threads: None) -> None:
    some = places(("slow:50000",), ("stall:100000:600:0",))
    main = threading.main_thread().ident
    assert main is not None
    timer = threading.Timer(0.8, lambda: signal.pthread_kill(main, signal.SIGINT))
    timer.start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        send(files.blobs, [place.destination for place in some])
    assert time.monotonic() - started < 3
    timer.join()
    assert not any(place.has(files.digests[0]) for place in some)
