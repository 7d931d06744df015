from __future__ import annotations

import errno
import hashlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lj_image.config import Config, ConfigFile, Source
from lj_image.errors import ArtifactError, LockError
from lj_image.lock import fetch as fetch_module
from lj_image.lock import http as http_module
from lj_image.lock.fetch import fetch
from lj_image.lock.lock import Artifact, LockedArchive, LockedDistribution
from lj_image.lock.store import ArtifactStore
from unit.lock.loopback import Loopback, answer, cut_after, hang_after, status, whole

CONTENT = os.urandom(3_000_000)


class Counter:
    """A progress that remembers."""

    def __init__(self) -> None:
        self.total, self.count, self.calls, self.ended = 0, 0, 0, False

    def start(self, total_bytes: int, title: str) -> None:
        self.total = total_bytes

    def advance(self, n: int) -> None:
        self.count += n
        self.calls += 1

    def done(self) -> None:
        self.ended = True


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_module, "backoff_s", lambda attempt: 0.01)
    monkeypatch.setattr(fetch_module, "backoff_s", lambda attempt: 0.01)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(file=None, values=ConfigFile(), cache_dir=tmp_path / "cache")


def locked(name: str, content: bytes, *, index: str = "pypi", file: str | None = None) -> LockedDistribution:
    digest = hashlib.sha256(content).hexdigest()
    artifact = Artifact(file or f"{name}-1.0-py3-none-any.whl", len(content), digest, "wheel")
    return LockedDistribution(name, "1.0", artifact, index, "app")


def offered(index: Loopback, name: str, content: bytes) -> LockedDistribution:
    item = locked(name, content)
    index.projects[name] = {item.artifact.file: content}
    return item


def test_files_arrive_verified_under_their_digest(index: Loopback, config: Config, store: ArtifactStore) -> None:
    items = [offered(index, f"app{number}", os.urandom(100_000 + number)) for number in range(20)]
    progress = Counter()
    assert len(fetch(items, config, store, progress)) == 20
    assert all(store.has(item.artifact) for item in items)
    assert progress.count == progress.total == sum(item.artifact.size_bytes for item in items)
    assert progress.ended
    asked = len(index.requests)
    assert fetch(items, config, ArtifactStore(config.cache_dir)) == ()
    assert len(index.requests) == asked


@pytest.mark.parametrize("pages", ["html", "bare"])
def test_html_pages_serve_as_well(index: Loopback, config: Config, store: ArtifactStore, pages: str) -> None:
    index.pages = pages
    item = offered(index, "app", CONTENT)
    fetch([item], config, store)
    assert store.has(item.artifact)


def test_broken_connection_is_resumed_where_it_broke(index: Loopback, config: Config, store: ArtifactStore) -> None:
    item = offered(index, "app", CONTENT)
    index.faults[item.artifact.file] = [cut_after(1_000_000)]
    progress = Counter()
    fetch([item], config, store, progress)
    assert store.path(item.artifact.sha256).read_bytes() == CONTENT
    assert [headers.get("Range") for headers in index.asked(item.artifact.file)] == [None, "bytes=1000000-"]
    assert progress.count == len(CONTENT)


def test_file_of_an_earlier_run_is_resumed(index: Loopback, config: Config, store: ArtifactStore) -> None:
    item = offered(index, "app", CONTENT)
    store.prepare()
    partial = store.partial(item.artifact.sha256)
    partial.parent.mkdir()
    partial.write_bytes(CONTENT[:2_000_000])
    fetch([item], config, store)
    assert index.asked(item.artifact.file)[0]["Range"] == "bytes=2000000-"
    assert store.has(item.artifact)
    assert not partial.exists()


@pytest.mark.parametrize("beginning", [b"x" * 1000, CONTENT + b"more", b"x" * len(CONTENT)])
def test_wrong_beginning_of_an_earlier_run_is_thrown_away(
    index: Loopback, config: Config, store: ArtifactStore, beginning: bytes
) -> None:
    item = offered(index, "app", CONTENT)
    store.prepare()
    partial = store.partial(item.artifact.sha256)
    partial.parent.mkdir()
    partial.write_bytes(beginning)
    progress = Counter()
    fetch([item], config, store, progress)
    assert store.path(item.artifact.sha256).read_bytes() == CONTENT
    assert progress.count == len(CONTENT)


def test_server_that_ignores_the_range_starts_the_file_again(
    index: Loopback, config: Config, store: ArtifactStore
) -> None:
    item = offered(index, "app", CONTENT)
    index.faults[item.artifact.file] = [cut_after(1_000_000), whole]
    progress = Counter()
    fetch([item], config, store, progress)
    assert store.path(item.artifact.sha256).read_bytes() == CONTENT
    assert progress.count == len(CONTENT)


def test_answer_to_another_range_starts_the_file_again(index: Loopback, config: Config, store: ArtifactStore) -> None:
    item = offered(index, "app", CONTENT)

    def shifted(handler: object, body: bytes) -> None:
        answer(handler, 206, body[:10], {"Content-Range": f"bytes 0-9/{len(body)}"})  # type: ignore[arg-type]

    index.faults[item.artifact.file] = [cut_after(1_000_000), shifted]
    fetch([item], config, store)
    assert store.has(item.artifact)


def test_temporary_refusals_are_waited_for(index: Loopback, config: Config, store: ArtifactStore) -> None:
    item = offered(index, "app", CONTENT)
    index.faults[item.artifact.file] = [status(503), status(429, Retry_After="1"), status(502)]
    index.faults["app"] = []
    began = time.monotonic()
    fetch([item], config, store)
    assert time.monotonic() - began >= 1.0
    assert store.has(item.artifact)


def test_server_that_never_recovers_is_named(index: Loopback, config: Config, store: ArtifactStore) -> None:
    item = offered(index, "app", CONTENT)
    index.faults[item.artifact.file] = [status(503)] * 20
    with pytest.raises(ArtifactError, match=r"app-1\.0-py3-none-any\.whl: the server does not answer: 503"):
        fetch([item], config, store)
    assert len(index.asked(item.artifact.file)) == http_module.ATTEMPTS


def test_file_that_always_ends_early_is_given_up(index: Loopback, config: Config, store: ArtifactStore) -> None:
    item = offered(index, "app", CONTENT)
    short = CONTENT[:1000]
    index.projects["app"][item.artifact.file] = short
    index.pages = "bare"
    with pytest.raises(ArtifactError, match=r"ends after 1,000 of 3,000,000 bytes|has other bytes"):
        fetch([item], config, store)
    assert not store.has(item.artifact)


def test_password_goes_to_its_own_host_only(
    serve: Callable[..., Loopback], config: Config, store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = serve()
    vendor = serve(credentials=("robot", "secret"), file_host=files.url)
    item = locked("app", CONTENT, index="vendor")
    for server in (vendor, files):
        server.projects["app"] = {item.artifact.file: CONTENT}
    monkeypatch.setenv("VENDOR_PASSWORD", "secret")
    source = Source(url=vendor.simple, username="robot", password_env="VENDOR_PASSWORD")
    fetch([item], replace(config, values=ConfigFile(indexes={"vendor": source})), store)
    assert store.has(item.artifact)
    assert "Authorization" in vendor.asked("/app/")[0]
    assert "Authorization" not in files.asked(item.artifact.file)[0]


def test_refused_password_is_an_error_with_the_place_to_look(
    serve: Callable[..., Loopback], config: Config, store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    vendor = serve(credentials=("robot", "secret"))
    monkeypatch.setenv("VENDOR_PASSWORD", "guess")
    source = Source(url=vendor.simple, username="robot", password_env="VENDOR_PASSWORD")
    known = replace(config, values=ConfigFile(indexes={"vendor": source}))
    with pytest.raises(ArtifactError, match="the index 'vendor' refuses us: 401") as error:
        fetch([locked("app", CONTENT, index="vendor")], known, store)
    assert error.value.hint == "check user and password of `indexes.vendor`"
    assert "guess" not in str(error.value.lines())
    assert len(vendor.requests) == 1


def test_unknown_index_is_an_error_before_anything_is_loaded(
    index: Loopback, config: Config, store: ArtifactStore
) -> None:
    items = [offered(index, "app", CONTENT), locked("other", b"x", index="vendor")]
    with pytest.raises(LockError, match="no address for the index 'vendor'"):
        fetch(items, config, store)
    assert index.requests == []


def test_file_that_is_gone_is_named(index: Loopback, config: Config, store: ArtifactStore) -> None:
    index.offer("app", "2.0")
    with pytest.raises(ArtifactError, match=r"app-1\.0-py3-none-any\.whl is not on the index 'pypi'"):
        fetch([locked("app", CONTENT)], config, store)
    with pytest.raises(ArtifactError, match=r"gone-1\.0-py3-none-any\.whl is not on the index 'pypi'"):
        fetch([locked("gone", CONTENT)], config, store)


def test_file_that_was_replaced_is_refused_without_loading_it(
    index: Loopback, config: Config, store: ArtifactStore
) -> None:
    item = offered(index, "app", CONTENT)
    index.projects["app"][item.artifact.file] = b"replaced"
    with pytest.raises(ArtifactError, match="offers other bytes as app-1"):
        fetch([item], config, store)
    assert not index.asked(item.artifact.file)


@pytest.mark.parametrize("wrong", [CONTENT[:-1] + bytes([CONTENT[-1] ^ 1]), CONTENT + b"more"])
def test_wrong_bytes_are_refused_and_nothing_stays(
    index: Loopback, config: Config, store: ArtifactStore, wrong: bytes
) -> None:
    item = offered(index, "app", CONTENT)
    index.projects["app"][item.artifact.file] = wrong
    index.pages = "bare"
    with pytest.raises(ArtifactError, match=r"has other bytes than were locked|is longer than"):
        fetch([item], config, store)
    assert not store.has(item.artifact)
    assert not store.partial(item.artifact.sha256).exists()


def test_archive_comes_from_its_location(
    serve: Callable[..., Loopback], config: Config, store: ArtifactStore, tmp_path: Path
) -> None:
    vendor = serve(archives={"accl.tar.gz": CONTENT})
    artifact = Artifact("accl.tar.gz", len(CONTENT), hashlib.sha256(CONTENT).hexdigest(), "archive")
    item = LockedArchive("accl-n", "1", artifact, "vendor")
    source = Source(url=f"{vendor.url}/archives/")
    fetch([item], replace(config, values=ConfigFile(archives={"vendor": source})), store)
    assert store.has(artifact)


def test_archive_comes_from_a_folder(config: Config, store: ArtifactStore, tmp_path: Path) -> None:
    folder = tmp_path / "with space"
    folder.mkdir()
    (folder / "accl.tar.gz").write_bytes(CONTENT)
    artifact = Artifact("accl.tar.gz", len(CONTENT), hashlib.sha256(CONTENT).hexdigest(), "archive")
    item = LockedArchive("accl-n", "1", artifact, "vendor")
    source = Source(url=folder.as_uri())
    fetch([item], replace(config, values=ConfigFile(archives={"vendor": source})), store)
    assert store.has(artifact)


def test_ctrl_c_leaves_a_beginning_to_resume_and_no_thread(
    index: Loopback, config: Config, store: ArtifactStore
) -> None:
    item = offered(index, "app", CONTENT)
    until = threading.Event()
    index.faults[item.artifact.file] = [hang_after(2_000_000, until)]
    partial = store.partial(item.artifact.sha256)

    def interrupt() -> None:
        while not (partial.exists() and partial.stat().st_size):
            time.sleep(0.01)
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        fetch([item], config, store)
    until.set()
    assert time.monotonic() - began < 5
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("fetch")]
    kept = partial.stat().st_size
    assert kept >= 1024 * 1024
    fetch([item], config, store)
    assert index.asked(item.artifact.file)[-1]["Range"] == f"bytes={kept}-"
    assert store.has(item.artifact)


def test_first_failure_stops_the_other_transfers(index: Loopback, config: Config, store: ArtifactStore) -> None:
    slow = offered(index, "slow", CONTENT)
    until = threading.Event()
    index.faults[slow.artifact.file] = [hang_after(10, until)]
    began = time.monotonic()
    with pytest.raises(ArtifactError, match="gone-1"):
        fetch([slow, locked("gone", b"x")], config, store)
    until.set()
    assert time.monotonic() - began < 5


def test_two_runs_share_the_work(index: Loopback, config: Config) -> None:
    items = [offered(index, f"app{number}", os.urandom(500_000)) for number in range(6)]
    failures: list[BaseException] = []

    def run() -> None:
        try:
            fetch(items, config, ArtifactStore(config.cache_dir))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    for item in items:
        assert len(index.asked(item.artifact.file)) == 1


@pytest.fixture
def as_nobody() -> Iterator[None]:
    """Give up root's right to write everywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    yield
    os.seteuid(0)


def test_read_only_cache_serves_what_it_has_and_says_why_it_takes_no_more(
    index: Loopback, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as made:  # pytest's own folders are closed to other users
        cache = Path(made)
        cache.chmod(0o755)
        config = Config(file=None, values=ConfigFile(), cache_dir=cache)
        here, there = offered(index, "app", CONTENT), offered(index, "other", b"other")
        fetch([here], config, ArtifactStore(cache))
        folders = [cache, *(path for path in cache.rglob("*") if path.is_dir())]
        for folder in folders:
            folder.chmod(0o555)
        request.getfixturevalue("as_nobody")
        store = ArtifactStore(cache)
        assert fetch([here], config, store) == ()
        with pytest.raises(ArtifactError, match="cannot be written to"):
            fetch([here, there], config, store)
        if os.getuid() == 0:
            os.seteuid(0)
        for folder in folders:
            folder.chmod(0o755)


def test_more_than_the_disk_holds_is_refused_at_once(
    index: Loopback, config: Config, store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = offered(index, "app", CONTENT)
    monkeypatch.setattr(store.__class__, "free_bytes", lambda self: 1000)
    with pytest.raises(ArtifactError, match="3,000,000 bytes are needed, 1,000 bytes are free"):
        fetch([item], config, store)
    assert not index.asked(item.artifact.file)


def test_disk_that_fills_up_meanwhile_is_named(store: ArtifactStore) -> None:
    with (
        pytest.raises(ArtifactError, match=r"no space left for the cache .* 7 bytes are needed"),
        store.explained(store.root, 7),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")
