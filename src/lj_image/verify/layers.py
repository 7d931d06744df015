"""Looks through every layer of an image, as the engine saves it: which paths each holds, and which hold a secret.

A file that a later layer deletes is still in the image, so the layers are read and not the container. The stream
passes by once and nothing of it is kept; what was found is remembered by diff id.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from docker import APIClient

from lj_image.errors import EngineError, Interrupted
from lj_image.oci.streams import BLOCK_BYTES, ChunkReader, HashingChunks, Readable, decompressed, drain
from lj_image.oci.tars import Member, NotATarError, walk
from lj_image.verify.engine import engine_errors, patient
from lj_image.whole import write_whole

SCANNER: Final = 1
"""Raised when a scan finds other things than before, so that remembered ones are not taken for it."""
_BLOBS: Final = "blobs/sha256/"
SMALLEST_NEEDLE_BYTES: Final = 4
"""A shorter secret would be found everywhere by chance."""


@dataclass(frozen=True, slots=True)
class LayerScan:
    """What one layer holds."""

    diff_id: str
    paths: tuple[str, ...]
    """Files, links and whiteouts, without a leading slash; no folders."""
    secrets: tuple[str, ...]
    """The paths whose content or name holds a secret."""
    size_bytes: int
    """Of its tar, uncompressed."""


class Needles:
    """Secrets to look for. Their digest names a scan; they themselves are never written or shown."""

    def __init__(self, needles: Iterable[bytes]) -> None:
        self.needles = tuple(sorted({item for item in needles if len(item) >= SMALLEST_NEEDLE_BYTES}))
        self.overlap = max((len(item) for item in self.needles), default=1) - 1

    @cached_property
    def digest(self) -> str:
        """A digest over all of them, too slow to be guessed back from the cache's file names."""
        joined = b"".join(len(item).to_bytes(8, "big") + item for item in self.needles)
        return hashlib.pbkdf2_hmac("sha256", joined, b"lj-image layer scan", 100_000).hex()[:32]

    def found_in(self, content: bytes) -> bool:
        """Say whether any of them is in the content."""
        return any(needle in content for needle in self.needles)

    def in_member(self, member: Member) -> bool:
        """Say whether any of them is in a member's name or content, which is read as far as that takes."""
        if not self.needles:
            return False
        names = f"{member.path}\0{member.link}".encode(errors="surrogateescape")
        return self.found_in(names) or self._in_stream(member.content)

    def _in_stream(self, content: Readable) -> bool:
        tail = b""
        while block := content.read(BLOCK_BYTES):
            if self.found_in(tail + block if tail else block):
                return True
            tail = block[-self.overlap :] if self.overlap else b""
        return False


def scan_image(
    api: APIClient,
    image_id: str,
    diff_ids: Iterable[str],
    needles: Needles,
    cache_dir: Path,
    *,
    base: Iterable[str] = (),
    cancelled: Callable[[], bool] = lambda: False,
) -> tuple[LayerScan, ...]:
    """Return the scans of these layers of an image, in their order; the image is saved only if one is not known yet.

    Raises EngineError when the engine does not hand a layer out.
    """
    wanted = tuple(dict.fromkeys(diff_ids))
    memory = _Memory(cache_dir / "scans", needles)
    known = {diff_id: scan for diff_id in wanted if (scan := memory.read(diff_id)) is not None}
    if len(known) < len(wanted):
        missing = frozenset(wanted) - known.keys()
        with engine_errors(f"reading the layers of {image_id}"), patient(api):
            chunks = _until(cancelled, api.get_image(image_id, chunk_size=BLOCK_BYTES))
            for scan in scan_saved(chunks, missing, needles, unwanted=base):
                memory.write(scan)
                known[scan.diff_id] = scan
    if lost := [diff_id for diff_id in wanted if diff_id not in known]:
        raise EngineError(
            f"the engine saved {image_id} without its layer {lost[0]}, or in a compression that lj-image does not read",
            hint="pull or build the image again with this engine",
        )
    return tuple(known[diff_id] for diff_id in wanted)


def _until(cancelled: Callable[[], bool], chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        if cancelled():
            raise Interrupted("the scan was given up")
        yield chunk


def scan_saved(
    chunks: Iterable[bytes], wanted: frozenset[str], needles: Needles, *, unwanted: Iterable[str] = ()
) -> Iterator[LayerScan]:
    """Yield the scan of each wanted layer in a stream of `docker save`.

    Either form is read: `<id>/layer.tar` (engines up to 24) and `blobs/sha256/<digest>` (25 and newer, where a
    containerd store keeps the blobs compressed). Which entry is which layer is told by digest, since the list of
    layers comes last. `unwanted` names layers that need not be read where their entry's name gives them away.
    """
    done: set[str] = set()
    skipped = frozenset(item.removeprefix("sha256:") for item in unwanted)
    for entry in walk(ChunkReader(chunks)):
        if not (entry.is_file and _may_be_layer(entry.path, skipped)):
            continue
        scan = _scan_layer(entry.content, needles)
        if scan is not None and scan.diff_id in wanted - done:
            done.add(scan.diff_id)
            yield scan
        if done == wanted:
            return


def _may_be_layer(name: str, unwanted: frozenset[str]) -> bool:
    """Say whether an entry of the outer tar is worth reading."""
    if name.startswith(_BLOBS):
        return name.removeprefix(_BLOBS) not in unwanted
    return name.endswith("/layer.tar")


def _scan_layer(content: Readable, needles: Needles) -> LayerScan | None:
    """Scan one layer's tar; None when the entry is no tar but a manifest or a configuration."""
    with HashingChunks(decompressed(content)) as chunks:
        layer = ChunkReader(chunks)
        paths: list[str] = []
        secrets: list[str] = []
        try:
            for member in walk(layer):
                if not member.is_folder:
                    paths.append(member.path)
                if needles.in_member(member):
                    secrets.append(member.path)
        except (NotATarError, zlib.error):
            return None
        drain(layer)  # what follows the tar's end is part of the digest
        return LayerScan(f"sha256:{chunks.hexdigest()}", tuple(paths), tuple(secrets), chunks.size_bytes)


class _Memory:
    """Scans on disk, by diff id, scanner and needles."""

    def __init__(self, folder: Path, needles: Needles) -> None:
        self._folder = folder
        self._suffix = f"{SCANNER}-{needles.digest}"

    def _path(self, diff_id: str) -> Path:
        return self._folder / f"{diff_id.replace(':', '-')}-{self._suffix}.json"

    def read(self, diff_id: str) -> LayerScan | None:
        """Return what is remembered; a damaged file is as good as none."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            kept = json.loads(self._path(diff_id).read_text(encoding="utf-8"))
            return LayerScan(diff_id, tuple(kept["paths"]), tuple(kept["secrets"]), int(kept["size_bytes"]))
        return None

    def write(self, scan: LayerScan) -> None:
        kept = {"paths": scan.paths, "secrets": scan.secrets, "size_bytes": scan.size_bytes}
        write_whole(self._path(scan.diff_id), json.dumps(kept))
