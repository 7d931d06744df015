"""Bring the files of a lock into the store: in parallel, resumed, verified while they stream."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, assert_never

import httpx

from lj_image.config import Config
from lj_image.errors import ArtifactError
from lj_image.lock.http import ATTEMPTS, Address, Client, Refused, Stopped, backoff_s, bare, wait_after
from lj_image.lock.index import SimpleIndexes, archive_address, index_addresses, refused
from lj_image.lock.lock import Artifact, LockedArchive, LockedDistribution
from lj_image.lock.progress import Progress, Silent
from lj_image.lock.store import CHUNK_BYTES, ArtifactStore, disk_full, hash_beginning

THREADS: Final = 8
WORTH_RESUMING_BYTES: Final = CHUNK_BYTES
"""A shorter beginning is not worth its place on a full disk."""
Locked = LockedDistribution | LockedArchive


def fetch(
    items: Iterable[Locked], config: Config, store: ArtifactStore, progress: Progress | None = None
) -> tuple[Artifact, ...]:
    """Load what of a lock's files is not in the store yet, and return those.

    Raises ArtifactError naming the file that cannot be had. After an interruption the beginnings of files stay, and
    the next call goes on from there.
    """
    wanted = _missing(items, store)
    if not wanted:
        return ()
    for item in wanted:
        _check_address(item, config)  # before gigabytes are loaded
    store.prepare()
    total = sum(item.artifact.size_bytes for item in wanted)
    needed = total - sum(_size(store.partial(item.artifact.sha256)) for item in wanted)
    if needed > (free := store.free_bytes()):
        raise disk_full(store.root, needed, free)
    progress = progress or Silent()
    progress.start(total, f"fetching {len(wanted)} file{'s' if len(wanted) != 1 else ''}")
    try:
        with Client() as client:
            fetcher = _Fetcher(client, SimpleIndexes(config, client), config, store, progress.advance)
            _in_parallel(client, [(fetcher.one, item) for item in wanted])
    finally:
        progress.done()
    return tuple(item.artifact for item in wanted)


def fetch_unknown(url: str, address: Address, store: ArtifactStore, file: Artifact, progress: Progress) -> Artifact:
    """Load a file whose digest nobody has stated yet; `file` gives its name and kind.

    Raises ArtifactError when it cannot be had.
    """
    with Client() as client:
        progress.start(client.size_of(url, address) or 0, f"fetching {file.file}")
        try:
            return _load_unknown(client, url, address, store, file, progress.advance)
        except (Refused, httpx.HTTPError) as error:
            words = str(error) if isinstance(error, Refused) else f"{type(error).__name__}: {error}"
            raise ArtifactError(f"{file.file} cannot be fetched: {words}", hint=f"asked {bare(url)}") from None
        finally:
            progress.done()


def _missing(items: Iterable[Locked], store: ArtifactStore) -> tuple[Locked, ...]:
    by_digest = {item.artifact.sha256: item for item in items}
    missing = store.missing(item.artifact for item in by_digest.values())
    largest_first = sorted(missing, key=lambda artifact: (-artifact.size_bytes, artifact.file))
    return tuple(by_digest[artifact.sha256] for artifact in largest_first)


def _check_address(item: Locked, config: Config) -> None:
    match item:
        case LockedDistribution():
            index_addresses(item.index, config)
        case LockedArchive():
            archive_address(item.location, config)
        case _:
            assert_never(item)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _in_parallel(client: Client, jobs: list[tuple[Callable[[Locked], None], Locked]]) -> None:
    """Run all jobs; the first failure, or Ctrl-C, stops the others at once, and no thread is left behind."""
    pool = ThreadPoolExecutor(THREADS, thread_name_prefix="fetch")
    try:
        futures = [pool.submit(job, item) for job, item in jobs]
        wait(futures, return_when=FIRST_EXCEPTION)
        if any(future.done() and future.exception() for future in futures):
            client.cut_off()
    except BaseException:
        client.cut_off()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    _raise_first(futures)


def _raise_first(futures: list[Future[None]]) -> None:
    """Raise the failure that came first; the others are its consequences."""
    failures = [failure for future in futures if not future.cancelled() and (failure := future.exception())]
    real = [failure for failure in failures if not isinstance(failure, Stopped)]
    for failure in (*real, *failures):
        raise failure


@dataclass(frozen=True, slots=True)
class _Fetcher:
    """Loads single files; shared by the threads."""

    client: Client
    indexes: SimpleIndexes
    config: Config
    store: ArtifactStore
    advance: Callable[[int], None]

    def one(self, item: Locked) -> None:
        """Load one file, unless another process has just done so."""
        artifact = item.artifact
        with self.store.writing(artifact.sha256, self.client.check):
            if self.store.has(artifact):
                self.advance(artifact.size_bytes)
                return
            url, address = self._locate(item)
            try:
                _Transfer(self, artifact, url, address).run()
            except Refused as refusal:
                raise self._explain(item, refusal) from None
            except httpx.HTTPError as error:
                raise ArtifactError(
                    f"{artifact.file} cannot be fetched: {type(error).__name__}: {error}",
                    hint=f"asked {bare(url)}; run the command again, what has come so far is kept",
                ) from None

    def _locate(self, item: Locked) -> tuple[str, Address]:
        match item:
            case LockedDistribution():
                return self.indexes.find(item)
            case LockedArchive():
                address = archive_address(item.location, self.config)
                return archive_url(address, item.artifact.file), address
            case _:
                assert_never(item)

    def _explain(self, item: Locked, refusal: Refused) -> ArtifactError:
        if refusal.status == 404:
            return ArtifactError(f"{item.artifact.file} is not where it should be: {refusal}")
        section, name = ("archives", item.location) if isinstance(item, LockedArchive) else ("indexes", item.index)
        return refused(refusal, f"{item.artifact.file}: the server", section, name, self.config)


def archive_url(address: Address, file: str) -> str:
    """Return the address of an archive below that of its location."""
    return f"{address.url.rstrip('/')}/{file}"


class _Transfer:
    """One file on its way: its partial file, its running hash, and how often it failed in a row."""

    def __init__(self, fetcher: _Fetcher, artifact: Artifact, url: str, address: Address) -> None:
        self.fetcher = fetcher
        self.artifact = artifact
        self.url = url
        self.address = address
        self.partial = fetcher.store.partial(artifact.sha256)
        self.digest, self.size = hashlib.sha256(), 0
        self.began_at = 0
        """Where the bytes of an earlier run end: if the whole turns out wrong, those may be to blame."""

    def run(self) -> None:
        """Load the file and put it in its place."""
        with self.fetcher.store.explained(self.partial, self.artifact.size_bytes):
            self.partial.parent.mkdir(parents=True, exist_ok=True)
            self.partial.touch()
        self._take_up()
        failures, furthest = 0, self.size
        while self.size < self.artifact.size_bytes:
            if failures == ATTEMPTS:
                raise self._too_short()
            wait_s = self._attempt(failures)
            failures = 0 if self.size > furthest else failures + 1
            furthest = max(furthest, self.size)
            if self.size < self.artifact.size_bytes:
                self.fetcher.client.sleep(wait_s)
        if self.digest.hexdigest() != self.artifact.sha256:
            self._wrong_bytes()
            return
        self.fetcher.store.adopt(self.partial, self.artifact)

    def _take_up(self) -> None:
        """Go on from what an earlier run left."""
        digest, size = hash_beginning(self.partial)
        if size > self.artifact.size_bytes:
            self.partial.write_bytes(b"")
            return
        self.digest, self.size, self.began_at = digest, size, size
        self.fetcher.advance(size)

    def _restart(self) -> None:
        self.fetcher.advance(-self.size)
        self.digest, self.size, self.began_at = hashlib.sha256(), 0, 0
        self.partial.write_bytes(b"")

    def _wrong_bytes(self) -> None:
        """Give the whole a second chance when part of it came from an earlier run, else refuse it."""
        resumed = self.began_at > 0
        self._restart()
        if resumed:
            self.run()
            return
        self.partial.unlink()
        raise ArtifactError(
            f"{self.artifact.file} has other bytes than were locked",
            hint=f"from {bare(self.url)}, expected sha256 {self.artifact.sha256}; nothing of it was kept",
        )

    def _attempt(self, failures: int) -> float:
        """Load as much as comes; return how long to wait before the next attempt."""
        client = self.fetcher.client
        headers = {"Range": f"bytes={self.size}-"} if self.size else {}
        try:
            with client.stream(self.url, self.address, headers) as response:
                if response.status_code == 416:  # what we have is no beginning of what is there
                    self._restart()
                    return 0.0 if failures == 0 else backoff_s(failures)
                if not response.is_success:
                    return self._wait_or_refuse(response, failures)
                if self.size and not self._continues(response):
                    self._restart()
                self._receive(response)
        except httpx.TransportError:
            client.check()
            if failures + 1 >= ATTEMPTS:
                raise
        return backoff_s(failures)

    def _wait_or_refuse(self, response: httpx.Response, failures: int) -> float:
        wait_s = wait_after(response, failures)
        if wait_s is None or failures + 1 >= ATTEMPTS:
            raise Refused(response.status_code, self.url)
        return wait_s

    def _continues(self, response: httpx.Response) -> bool:
        """Say whether the answer begins where we stopped; a server may ignore Range (RFC 9110 §14.2)."""
        stated = response.headers.get("Content-Range", "")
        return response.status_code == 206 and stated.startswith(f"bytes {self.size}-")

    def _receive(self, response: httpx.Response) -> None:
        store = self.fetcher.store
        try:
            with store.explained(self.partial, self.artifact.size_bytes - self.size), self.partial.open("ab") as target:
                for chunk in response.iter_raw():  # as they come: what waits for more is lost when the line breaks
                    self._take(chunk, target)
        except ArtifactError:
            if _size(self.partial) < WORTH_RESUMING_BYTES:
                self.partial.unlink(missing_ok=True)
            raise

    def _take(self, chunk: bytes, target: BinaryIO) -> None:
        self.fetcher.client.check()
        if self.size + len(chunk) > self.artifact.size_bytes:
            raise self._too_long()
        target.write(chunk)
        self.digest.update(chunk)
        self.size += len(chunk)
        self.fetcher.advance(len(chunk))

    def _too_long(self) -> ArtifactError:
        self._restart()
        return ArtifactError(
            f"{self.artifact.file} is longer than the {self.artifact.size_bytes:,} bytes that were locked",
            hint=f"from {bare(self.url)}; nothing of it was kept",
        )

    def _too_short(self) -> ArtifactError:
        return ArtifactError(
            f"{self.artifact.file} ends after {self.size:,} of {self.artifact.size_bytes:,} bytes",
            hint=f"from {bare(self.url)}, tried {ATTEMPTS} times; what has come so far is kept",
        )


def _load_unknown(
    client: Client, url: str, address: Address, store: ArtifactStore, file: Artifact, advance: Callable[[int], None]
) -> Artifact:
    """Load a file of unknown digest; without one, a beginning from an earlier attempt proves nothing."""
    for attempt in range(ATTEMPTS):
        count = _Count(advance)
        try:
            with client.stream(url, address) as response:
                if response.is_success:
                    return store.add(count.over(response.iter_raw()), file.file, file.kind)
                wait_s = wait_after(response, attempt)
                if wait_s is None or attempt + 1 == ATTEMPTS:
                    raise Refused(response.status_code, url)
        except httpx.TransportError:
            count.take_back()
            if attempt + 1 == ATTEMPTS:
                raise
            wait_s = backoff_s(attempt)
        client.sleep(wait_s)
    raise AssertionError("the last attempt returns or raises")


class _Count:
    """Reports the bytes of one attempt, and takes them back when it failed."""

    def __init__(self, advance: Callable[[int], None]) -> None:
        self._advance = advance
        self._bytes = 0

    def over(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            yield chunk
            self._bytes += len(chunk)
            self._advance(len(chunk))

    def take_back(self) -> None:
        self._advance(-self._bytes)
