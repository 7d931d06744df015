"""Which wheels' contents were held against their own RECORD; once is enough, since a digest names a wheel.

    <cache>/oci/inspected/<sha256>   an empty file for each such wheel

A third hash over every byte costs a layer a fifth of its time, so `lj-image fetch` does it after a download, and the
assembler for wheels that nobody has looked into yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from lj_image.builders.oci.entries import ZipMember
from lj_image.builders.oci.passing import ContentCheck, ZipSource
from lj_image.builders.oci.scheme import Scheme
from lj_image.builders.oci.wheel.install import installed
from lj_image.builders.oci.wheel.wheel import Wheel
from lj_image.whole import write_whole

_ANYWHERE = Scheme("usr/lib/python3/site-packages", "usr", "3", "/usr/bin/python3", "")
"""Where the files would go does not matter here."""


class Inspected:
    """The wheels of a cache that are known to hold what they promise."""

    def __init__(self, cache_dir: Path) -> None:
        self._folder = cache_dir / "oci" / "inspected"

    def knows(self, wheel: Wheel) -> bool:
        """Say whether a wheel was inspected."""
        return (self._folder / wheel.sha256).exists()

    def remember(self, wheels: Iterable[Wheel]) -> None:
        """Remember that wheels are in order; does without where nothing can be written."""
        for wheel in wheels:
            if not self.knows(wheel):
                with suppress(OSError):
                    write_whole(self._folder / wheel.sha256, b"")


def inspect(wheel: Wheel) -> None:
    """Read all of a wheel; raises BuildError for what cannot be installed, and for what is not as promised."""
    source = ZipSource()
    try:
        for file in installed(wheel, _ANYWHERE):
            if isinstance(file.content, ZipMember):
                check = ContentCheck(None, file.content, with_digest=False)
                source.pass_by(file.content, check)
                check.require_kept(file)
    finally:
        source.close()


def inspect_new(wheels: Iterable[Wheel], cache_dir: Path) -> int:
    """Inspect the wheels that nobody has looked into, and remember them; return how many there were.

    Each is read in a process beside the others. Raises what `inspect` raises.
    """
    from lj_image.builders.oci.crew import pool_for

    memory = Inspected(cache_dir)
    new = [wheel for wheel in wheels if not memory.knows(wheel)]
    if not new:
        return 0
    new.sort(key=lambda wheel: -wheel.path.stat().st_size)
    with pool_for(len(new)) as pool:
        for wheel, _ in zip(new, pool.map(inspect, new), strict=True):
            memory.remember([wheel])
    return len(new)
