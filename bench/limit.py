"""The least that assembling wheels can cost: inflate, digest what comes out, digest what went in, write that.

A plain loop over the members' bytes, which checks nothing and makes no tar. Where the members lie is found out before
the clock starts. ISA-L inflates, the fastest that a Python package brings; small pieces are gathered before they are
digested and written, or the calls would take longer than the work.
"""

from __future__ import annotations

import hashlib
import mmap
import multiprocessing
import os
import struct
import time
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from isal import isal_zlib

PIECE_BYTES: Final = 256 * 1024
# APPNOTE 4.3.7: 26 bytes, then the lengths of the name and of the extra field, both before the content.
_LOCAL_HEADER: Final = struct.Struct("<26xHH")


@dataclass(frozen=True, slots=True)
class Span:
    """Where a member's compressed bytes lie."""

    offset: int
    compressed_bytes: int
    size_bytes: int
    is_stored: bool


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel's members."""

    path: Path
    spans: tuple[Span, ...]

    @property
    def size_bytes(self) -> int:
        """Of all that is in it."""
        return sum(span.size_bytes for span in self.spans)


@dataclass(frozen=True, slots=True)
class Passed:
    """What a wheel's bytes came to, in hex."""

    plain_sha256: str
    compressed_sha256: str


def spans_of(path: Path) -> Wheel:
    """Find a wheel's members."""
    with zipfile.ZipFile(path) as pack, path.open("rb") as file:
        return Wheel(path, tuple(_span(file.fileno(), item) for item in pack.infolist() if item.file_size))


def _span(descriptor: int, item: zipfile.ZipInfo) -> Span:
    name, extra = _LOCAL_HEADER.unpack(os.pread(descriptor, _LOCAL_HEADER.size, item.header_offset))
    offset = item.header_offset + _LOCAL_HEADER.size + name + extra
    return Span(offset, item.compress_size, item.file_size, item.compress_type == zipfile.ZIP_STORED)


def pass_all(wheels: Iterable[Wheel], folder: Path, processes: int) -> tuple[float, list[Passed]]:
    """Do the work for all wheels, shared out largest first; return the seconds, and each wheel's digests in order.

    What is written below `folder` is removed when the clock has stopped.
    """
    order = sorted(wheels, key=lambda wheel: -wheel.size_bytes)
    tasks = [(wheel, folder / f"{number}.written") for number, wheel in enumerate(order)]
    started = time.perf_counter()
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        found = list(pool.imap(_pass_task, tasks, chunksize=1))
        seconds = time.perf_counter() - started
    for _, target in tasks:
        target.unlink()
    return seconds, found


def _pass_task(task: tuple[Wheel, Path]) -> Passed:
    return pass_wheel(*task)


def pass_wheel(wheel: Wheel, target: Path) -> Passed:
    """Do the work for one wheel."""
    plain, compressed, gathered = hashlib.sha256(), hashlib.sha256(), bytearray()
    with wheel.path.open("rb") as file, target.open("wb", buffering=0) as out:
        view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        for piece, inflated in (pieces for span in wheel.spans for pieces in _pieces(view, span)):
            plain.update(inflated)
            gathered += piece
            if len(gathered) >= PIECE_BYTES:
                compressed.update(gathered)
                out.write(gathered)
                gathered.clear()
        compressed.update(gathered)
        out.write(gathered)
    return Passed(plain.hexdigest(), compressed.hexdigest())


def _pieces(view: memoryview, span: Span) -> Iterator[tuple[memoryview, bytes | memoryview]]:
    end = span.offset + span.compressed_bytes
    if not span.is_stored and span.compressed_bytes <= PIECE_BYTES:
        piece = view[span.offset : end]
        yield piece, isal_zlib.decompress(piece, wbits=-15, bufsize=span.size_bytes)
        return
    inflater = isal_zlib.decompressobj(wbits=-15)
    for at in range(span.offset, end, PIECE_BYTES):
        piece = view[at : min(at + PIECE_BYTES, end)]
        yield piece, piece if span.is_stored else inflater.decompress(piece)


def wheels_below(folder: Path) -> Sequence[Wheel]:
    """Find all wheels below a folder, by path."""
    return [spans_of(path) for path in sorted(folder.rglob("*.whl"))]
