"""The artifact store: files known by their digest, kept on this machine, shared by all releases.

    <cache>/artifacts/sha256/ab/<hex>            a complete, verified file, read-only
    <cache>/artifacts/sha256/ab/<hex>.verified   what it looked like when its digest was last computed
    <cache>/artifacts/sha256/ab/<hex>.partial    the beginning of a file, to be resumed
    <cache>/artifacts/locks/<hex>.lock           one writer per file

A file appears under its digest by rename, when its digest is known to be right.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lj_image.errors import ArtifactError
from lj_image.lock.lock import Artifact, ArtifactKind

if TYPE_CHECKING:
    from hashlib import _Hash

CHUNK_BYTES: Final = 1024 * 1024
_POLL_S: Final = 0.2


class ArtifactStore:
    """Files by sha256 below a cache folder; safe for several threads and processes."""

    def __init__(self, cache_dir: Path) -> None:
        self.root = cache_dir / "artifacts"
        self._guard = threading.Lock()
        self._seen: dict[str, tuple[int, int, int]] = {}

    def path(self, sha256: str) -> Path:
        """Return where the file of a digest lies, or would lie."""
        return self.root / "sha256" / sha256[:2] / sha256

    def partial(self, sha256: str) -> Path:
        """Return where the beginning of a file is kept until it is complete."""
        return self.path(sha256).with_suffix(".partial")

    def has(self, artifact: Artifact) -> bool:
        """Say whether the right bytes are here; wrong ones are dropped.

        A file is hashed once. It is believed later while its size, time and inode are those of the hashed file:
        a release has gigabytes, and every build asks.
        """
        path = self.path(artifact.sha256)
        try:
            found = _identity(path)
        except OSError:
            return False
        if found[0] == artifact.size_bytes and found == self._believed(artifact.sha256):
            return True
        if found[0] == artifact.size_bytes and sha256_of(path) == artifact.sha256:
            self._believe(artifact.sha256, found)
            return True
        self.drop(artifact.sha256)
        return False

    def require(self, artifact: Artifact) -> Path:
        """Return the path of a file that must be here; raises ArtifactError when it is not."""
        if not self.has(artifact):
            raise ArtifactError(
                f"{artifact.file} is not in the cache",
                hint=f"expected {self.path(artifact.sha256)}; `lj-image fetch` loads what a lock names",
            )
        return self.path(artifact.sha256)

    def drop(self, sha256: str) -> None:
        """Take a file out; one that cannot be deleted is not believed either."""
        with self._guard:
            self._seen.pop(sha256, None)
        for path in (self._marker(sha256), self.path(sha256)):
            with suppress(OSError):
                path.unlink()

    def missing(self, artifacts: Iterable[Artifact]) -> tuple[Artifact, ...]:
        """Return the artifacts that are not here, each digest once."""
        unique = {artifact.sha256: artifact for artifact in artifacts}
        return tuple(artifact for artifact in unique.values() if not self.has(artifact))

    def add(self, chunks: Iterable[bytes], file: str, kind: ArtifactKind) -> Artifact:
        """Store bytes whose digest is not known yet, and return what they are."""
        self.prepare()
        draft = self.root / f"incoming.{os.getpid()}.{threading.get_ident()}"
        digest, size = hashlib.sha256(), 0
        try:
            with self.explained(draft, 0), draft.open("wb") as target:
                for chunk in chunks:
                    target.write(chunk)
                    digest.update(chunk)
                    size += len(chunk)
            artifact = Artifact(file, size, digest.hexdigest(), kind)
            self.adopt(draft, artifact)
        finally:
            draft.unlink(missing_ok=True)
        return artifact

    def adopt(self, draft: Path, artifact: Artifact) -> None:
        """Move a finished file, whose digest the caller has computed, to its place."""
        path = self.path(artifact.sha256)
        with self.explained(path, 0):
            path.parent.mkdir(parents=True, exist_ok=True)
            draft.chmod(0o444)  # builds link these files; a link that is written to would change the store
            draft.replace(path)
            self._believe(artifact.sha256, _identity(path))

    def prepare(self) -> None:
        """Make the folders; raises ArtifactError when the cache cannot be written to."""
        for folder in (self.root / "sha256", self.root / "locks"):
            with self.explained(folder, 0):
                folder.mkdir(parents=True, exist_ok=True)
        if not os.access(self.root / "sha256", os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            raise _read_only(self.root)

    def free_bytes(self) -> int:
        """Return the space that is left where the store lies."""
        existing = next(path for path in (self.root, *self.root.parents) if path.exists())
        return shutil.disk_usage(existing).free

    @contextmanager
    def writing(self, sha256: str, check: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Be the only writer of a digest, on this machine; `check` may raise to give up waiting."""
        from filelock import FileLock, Timeout

        lock = FileLock(self.root / "locks" / f"{sha256}.lock")
        while True:
            check()
            try:
                with self.explained(self.root, 0):
                    lock.acquire(timeout=_POLL_S)
            except Timeout:
                continue
            break
        try:
            yield
        finally:
            lock.release()

    @contextmanager
    def explained(self, path: Path, needed_bytes: int) -> Iterator[None]:
        """Translate a full disk and a read-only cache; other failures pass."""
        try:
            yield
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise disk_full(self.root, needed_bytes, self.free_bytes()) from None
            if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
                raise _read_only(self.root) from None
            raise

    def _marker(self, sha256: str) -> Path:
        return self.path(sha256).with_suffix(".verified")

    def _believed(self, sha256: str) -> tuple[int, int, int] | None:
        with self._guard:
            if (seen := self._seen.get(sha256)) is not None:
                return seen
        try:
            size, mtime_ns, inode = json.loads(self._marker(sha256).read_text())
        except (OSError, ValueError, TypeError):
            return None
        return int(size), int(mtime_ns), int(inode)

    def _believe(self, sha256: str, identity: tuple[int, int, int]) -> None:
        with self._guard:
            self._seen[sha256] = identity
        marker = self._marker(sha256)
        draft = marker.with_name(f"{marker.name}.{os.getpid()}.{threading.get_ident()}")
        try:
            draft.write_text(json.dumps(identity))
            draft.replace(marker)
        except OSError:
            return  # a read-only cache: the next process hashes the file again


def sha256_of(path: Path) -> str:
    """Hash a file in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hash_beginning(path: Path) -> tuple[_Hash, int]:
    """Return the running hash over what is there of a file, and its size; of nothing when there is no file."""
    digest, size = hashlib.sha256(), 0
    if path.exists():
        with path.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                digest.update(chunk)
                size += len(chunk)
    return digest, size


def disk_full(root: Path, needed_bytes: int, free_bytes: int) -> ArtifactError:
    """Say what is missing on a full disk."""
    needed = f"{needed_bytes:,} bytes are needed, " if needed_bytes else ""
    return ArtifactError(
        f"no space left for the cache {root}: {needed}{free_bytes:,} bytes are free",
        hint="make room, or set `cache:` in the config (or LJ_IMAGE_CACHE) to a larger disk; what is complete is kept",
    )


def _read_only(root: Path) -> ArtifactError:
    return ArtifactError(
        f"the cache {root} cannot be written to",
        hint="files in it are used; to add some, make it writable or set `cache:` in the config (or LJ_IMAGE_CACHE)",
    )


def _identity(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ino
