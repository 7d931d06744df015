"""A folder of blobs, each under its own digest: `<folder>/blobs/sha256/<hex>`.

Format: https://github.com/opencontainers/image-spec/blob/main/image-layout.md#blobs
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from lj_image.errors import ArtifactError, Location
from lj_image.oci.digest import Digest, HashingWriter
from lj_image.oci.streams import BLOCK_BYTES, Readable

BLOB_MODE: Final = 0o444
"""Nobody writes into a blob: it would be another one."""


@dataclass(frozen=True, slots=True)
class BlobStore:
    """Blobs below a folder; one appears by rename, whole, so several writers may be at work."""

    folder: Path

    def path(self, digest: Digest) -> Path:
        """Return where a blob lies, or would lie."""
        return self.folder / "blobs" / "sha256" / digest.hex

    def has(self, digest: Digest) -> bool:
        """Say whether a blob is there; its content is not read."""
        return self.path(digest).is_file()

    def open(self, digest: Digest) -> BinaryIO:
        """Open a blob; raises ArtifactError where there is none."""
        try:
            return self.path(digest).open("rb")
        except FileNotFoundError:
            raise self._missing(digest) from None

    def size_bytes(self, digest: Digest) -> int:
        """Return a blob's size; raises ArtifactError where there is none."""
        try:
            return self.path(digest).stat().st_size
        except FileNotFoundError:
            raise self._missing(digest) from None

    def read(self, digest: Digest) -> bytes:
        """Return the bytes of a small blob; raises ArtifactError where they are missing or others."""
        with self.open(digest) as file:
            content = file.read()
        if Digest.of(content) != digest:
            raise ArtifactError(
                f"the blob {digest} has another digest",
                hint="the folder is damaged: write it anew",
                location=Location(str(self.path(digest))),
            )
        return content

    def put(self, content: bytes) -> Digest:
        """Write a small blob."""
        digest = Digest.of(content)
        if not self.has(digest):
            with self.writer() as writer:
                writer.write(content)
        return digest

    def receive(self, content: Readable, digest: Digest, size_bytes: int) -> None:
        """Write a blob whose digest is known; raises ArtifactError for other bytes, and then nothing appears."""
        if self.has(digest):
            return
        with self.writer() as writer:
            while block := content.read(BLOCK_BYTES):
                writer.write(block)
            if (writer.digest, writer.size_bytes) != (digest, size_bytes):
                raise ArtifactError(
                    f"the blob {digest} of {size_bytes} bytes came as {writer.digest} of {writer.size_bytes}",
                    hint="the place that it comes from is damaged",
                )

    def adopt(self, file: Path, digest: Digest) -> None:
        """Take a finished file over: it moves here. Whoever hands it in has made sure of its digest."""
        target = self._target(digest)
        file.chmod(BLOB_MODE)
        try:
            file.replace(target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            self._copy(file, target)
            file.unlink()

    def link(self, file: Path, digest: Digest) -> None:
        """Have a file here as well, by a hard link where the file system has them, else as a copy."""
        target = self._target(digest)
        if target.exists():
            return
        try:
            with tempfile.TemporaryDirectory(dir=self.folder, prefix=".partial-") as folder:
                linked = Path(folder, digest.hex)
                linked.hardlink_to(file)
                linked.replace(target)
        except OSError:  # EXDEV, EMLINK, EPERM: each file system has its own reason
            self._copy(file, target)

    @contextmanager
    def writer(self) -> Iterator[HashingWriter]:
        """Write a blob whose digest is known when it is done; it appears when the block ends without an error.

        Raises OSError, and leaves no beginning behind.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        number, name = tempfile.mkstemp(dir=self.folder, prefix=".blob-", suffix=".partial")
        partial = Path(name)
        try:
            with os.fdopen(number, "wb") as file:
                writer = HashingWriter(file)
                yield writer
            partial.chmod(BLOB_MODE)
            partial.replace(self._target(writer.digest))
        finally:
            partial.unlink(missing_ok=True)

    def _target(self, digest: Digest) -> Path:
        path = self.path(digest)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def _copy(self, file: Path, target: Path) -> None:
        with tempfile.TemporaryDirectory(dir=self.folder, prefix=".partial-") as folder:
            copied = Path(folder, target.name)
            shutil.copyfile(file, copied)
            copied.chmod(BLOB_MODE)
            copied.replace(target)

    def _missing(self, digest: Digest) -> ArtifactError:
        return ArtifactError(
            f"the blob {digest} is missing", hint="write the folder anew", location=Location(str(self.folder))
        )
