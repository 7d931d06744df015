"""Content -> an OCI layout in a folder or one tar, every digest checked; what an earlier try has written is kept.

A tar's places follow from sizes alone, so a beginning of it tells what is there; it appears under its name when it is
whole. Format: https://github.com/opencontainers/image-spec/blob/main/image-layout.md
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from lj_image.errors import ArtifactError, LjImageError, UsageError
from lj_image.oci.archive import END, RECORD_BYTES, header
from lj_image.oci.blobs import BlobStore
from lj_image.oci.content import Blob, Content
from lj_image.oci.descriptor import Descriptor
from lj_image.oci.digest import Digest, digest_of_stream
from lj_image.oci.layout import INDEX_FILE, LAYOUT_FILE, LAYOUT_MARK, REFERENCE, Layout
from lj_image.oci.manifest import Index
from lj_image.oci.streams import BLOCK_BYTES, Readable

_FILE_MODE: Final = 0o644
Watch = Callable[[int], None]
"""Is told of bytes that are there now; of fewer than none where some have to be written again."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written."""

    path: Path
    written_bytes: int
    """Of blobs, by this run."""
    kept_bytes: int
    """Of blobs, that were there and are right."""


def export_tar(content: Content, path: Path, names: Sequence[Mapping[str, str]], watch: Watch) -> Exported:
    """Write a tar whose index has an entry for each of the names, which are annotations.

    The same content and names give the same bytes. Ended early, its beginning stays beside it, and the next run goes on
    there. Raises ArtifactError for a blob of other bytes than its digest, LjImageError where it cannot be written.
    """
    beginning = b"".join(_beginning(content, names))
    with _writable(path), _partial(path) as file:
        there = _taken_over(file, beginning)
        _require_room(path.parent, len(beginning) + _blobs_bytes(content) - there)
        written = _Written(file, there, watch)
        for blob in content.blobs:
            written.add(blob)
        file.write(END)
        file.truncate()
    return Exported(path, written.new_bytes, max(0, content.size_bytes - written.new_bytes))


def export_folder(content: Content, folder: Path, names: Sequence[Mapping[str, str]], watch: Watch) -> Exported:
    """Write a layout, or add to the one that is there; each blob appears whole. Raises as `export_tar`, UsageError."""
    written = 0
    with _writable(folder):
        layout = Layout.create(folder)
        missing = tuple(blob for blob in content.blobs if not _is_right(layout.blobs, blob.descriptor, watch))
        _require_room(folder, sum(blob.descriptor.size_bytes for blob in missing))
        for blob in missing:
            with blob.open_at(0) as stream:
                watched = _Watched(stream, watch)
                layout.blobs.receive(watched, blob.descriptor.digest, blob.descriptor.size_bytes)
            written += blob.descriptor.size_bytes
        for document in content.documents:
            layout.blobs.put(document.content)
        for annotations in names:
            layout.set_reference(annotations[REFERENCE], _entry(content, annotations))
    return Exported(folder, written, content.size_bytes - written)


def _is_right(blobs: BlobStore, wanted: Descriptor, watch: Watch) -> bool:
    """Say whether a blob is there; one that is there and another is taken away."""
    if not blobs.has(wanted.digest):
        return False
    with blobs.open(wanted.digest) as file:
        if digest_of_stream(file) == (wanted.digest, wanted.size_bytes):
            watch(wanted.size_bytes)
            return True
    blobs.path(wanted.digest).unlink()
    return False


def _entry(content: Content, annotations: Mapping[str, str]) -> Descriptor:
    root = content.root.descriptor
    return Descriptor(root.media_type, root.digest, root.size_bytes, annotations)


def _beginning(content: Content, names: Sequence[Mapping[str, str]]) -> Iterator[bytes]:
    index = Index(tuple(_entry(content, annotations) for annotations in names))
    yield from _file(LAYOUT_FILE, LAYOUT_MARK)
    yield from _file(INDEX_FILE, index.to_bytes())
    yield header("blobs", 0, tarfile.DIRTYPE)
    yield header("blobs/sha256", 0, tarfile.DIRTYPE)
    for document in content.documents:
        yield from _file(_place(document.descriptor.digest), document.content)


def _file(name: str, content: bytes) -> Iterator[bytes]:
    yield header(name, len(content)) + content + bytes(-len(content) % RECORD_BYTES)


def _place(digest: Digest) -> str:
    return f"blobs/sha256/{digest.hex}"


def _blobs_bytes(content: Content) -> int:
    padded = (blob.descriptor.size_bytes + -blob.descriptor.size_bytes % RECORD_BYTES for blob in content.blobs)
    return sum(padded) + RECORD_BYTES * len(content.blobs) + len(END)


def _taken_over(file: BinaryIO, beginning: bytes) -> int:
    """Let a file begin so; return how many bytes it has, which are none of another content's."""
    if file.read(len(beginning)) != beginning:
        file.seek(0)
        file.truncate()
        file.write(beginning)
        return len(beginning)
    there = file.seek(0, os.SEEK_END)
    file.seek(len(beginning))
    return there


class _Written:
    """The blobs of a tar that grows, from where an earlier try ended."""

    def __init__(self, file: BinaryIO, there: int, watch: Watch) -> None:
        self._file, self._there, self._watch = file, there, watch
        self.new_bytes = 0

    def add(self, blob: Blob) -> None:
        """Write the next blob, or what of it is missing."""
        size = blob.descriptor.size_bytes
        self._file.write(header(_place(blob.descriptor.digest), size))
        start = self._file.tell()
        kept = min(max(0, self._there - start), size)
        # What was there may be other bytes, after a crash of the machine: then all of the blob is written anew.
        if not (self._is_right(blob, start, kept) or (kept and self._is_right(blob, start, 0))):
            self._file.seek(start)
            self._file.truncate()
            raise ArtifactError(
                f"the blob {blob.descriptor.digest} came as other bytes than those of its digest",
                hint="the place that it comes from is damaged; take it from another: --from",
            )
        self._file.write(bytes(-size % RECORD_BYTES))

    def _is_right(self, blob: Blob, start: int, kept: int) -> bool:
        """Read what is kept of a blob, write the rest after it, and say whether all of it is that of its digest."""
        self._file.seek(start)
        digest, left, passed = hashlib.sha256(), kept, 0
        while left and (block := self._file.read(min(left, BLOCK_BYTES))):
            digest.update(block)
            left, passed = left - len(block), self._pass(passed, block)
        if kept < blob.descriptor.size_bytes:
            self._file.seek(start + kept)
            with blob.open_at(kept) as stream:
                while passed <= blob.descriptor.size_bytes and (block := stream.read(BLOCK_BYTES)):
                    digest.update(block)
                    self._file.write(block)
                    self.new_bytes += len(block)
                    passed = self._pass(passed, block)
        right = (digest.hexdigest(), passed) == (blob.descriptor.digest.hex, blob.descriptor.size_bytes)
        if not right:
            self._there = start  # what lies behind was written after it
            self._watch(-passed)
        return right

    def _pass(self, passed: int, block: bytes) -> int:
        self._watch(len(block))
        return passed + len(block)


class _Watched:
    """A stream whose reader is watched."""

    def __init__(self, stream: Readable, watch: Watch) -> None:
        self._stream, self._watch = stream, watch

    def read(self, size: int, /) -> bytes:
        block = self._stream.read(size)
        self._watch(len(block))
        return block


@contextmanager
def _partial(path: Path) -> Iterator[BinaryIO]:
    """Give a file beside `path` to go on with, for one writer at a time; it takes that name when the block ends well.

    After a failure it stays as it is.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    with _locked(partial) as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
        partial.chmod(_FILE_MODE)
        partial.replace(path)


@contextmanager
def _locked(partial: Path) -> Iterator[BinaryIO]:
    while True:
        number = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, _FILE_MODE)
        with os.fdopen(number, "r+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(f"another export writes {partial} just now", hint="let it end") from None
            # Whoever had the lock before may have let it appear under its name, where nobody may write.
            if _is(partial, file):
                yield file
                return


def _is(path: Path, file: BinaryIO) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _require_room(folder: Path, wanted_bytes: int) -> None:
    free_bytes = shutil.disk_usage(folder).free
    if wanted_bytes > free_bytes:
        raise LjImageError(
            f"{folder} has room for {free_bytes:,} bytes, and {wanted_bytes:,} more are to be written",
            hint="make room, or name a place on another disk",
        )


@contextmanager
def _writable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        hint = "run the same command again: what was written is taken over"
        if error.errno == errno.EFBIG:  # FAT32 has no files of 4 GiB
            hint = "the file system takes no file as large: export to a folder"
        raise LjImageError(f"{path} cannot be written: {error.strerror or error}", hint=hint) from None
