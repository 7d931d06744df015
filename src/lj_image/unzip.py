"""Unpacks a zip inside the image, with what every base has: Python 3.8 or newer and its standard library.

Mounted beside the archive and run as `python3 unzip.py ARCHIVE PATH STRIP_COMPONENTS`, so nothing is imported from
lj_image. It does what `tar -x --no-same-owner --strip-components` does: modes, links and times are kept, the user who
runs it owns what it writes, and nothing is written outside of PATH. A member that cannot be unpacked so is named.
"""

from __future__ import annotations

import calendar
import contextlib
import os
import shutil
import stat
import sys
import zipfile
import zlib
from pathlib import Path

_FAULTS = (OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)
"""RuntimeError: a member is encrypted, or packed by a method that Python does not know."""
_KINDS = (0, stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)
"""0: the archive does not say, and means a file, or a directory where the name ends with a slash."""


class Refused(Exception):
    """A member is not unpacked, and so nothing of use is; says which one, and why."""

    def __init__(self, member: str, reason: object) -> None:
        super().__init__(f"{member!r}: {reason}")


def main(archive: str, path: str, strip_components: str) -> int:
    """Unpack, and return the exit code."""
    try:
        with zipfile.ZipFile(archive) as pack:
            unpack(pack, Path(path), int(strip_components))
    except (Refused, *_FAULTS) as fault:
        print(f"unzip: {Path(archive).name}: {fault}", file=sys.stderr)
        return 1
    return 0


def unpack(pack: zipfile.ZipFile, target: Path, strip_components: int) -> None:
    """Unpack into a directory; raises Refused, for a hostile name before anything is written."""
    root = target.resolve()
    placed = {root / relative: item for relative, item in members(pack, strip_components).items()}
    # Links come last: nothing can be written through one of the archive's own.
    for path, item in sorted(placed.items(), key=lambda entry: (_is_link(entry[1]), not entry[1].is_dir())):
        try:
            _write(pack, item, path, root)
        except _FAULTS as fault:
            raise Refused(item.filename, fault) from None
    for path in sorted((path for path, item in placed.items() if item.is_dir()), reverse=True):
        _finish(path, placed[path])  # what is written into a directory changes its time, and needs its permission


def members(pack: zipfile.ZipFile, strip_components: int) -> dict[str, zipfile.ZipInfo]:
    """Return what is to be unpacked by its path below the target; of several with one path, the last."""
    found = {}
    for item in pack.infolist():
        parts = [part for part in item.filename.split("/") if part not in ("", ".")]
        if item.filename.startswith("/"):
            raise Refused(item.filename, "an absolute path")
        if ".." in parts:
            raise Refused(item.filename, "leads out of the place where it is to be unpacked")
        if stat.S_IFMT(_mode(item)) not in _KINDS:
            raise Refused(item.filename, "neither a file nor a directory nor a link")
        if kept := parts[strip_components:]:
            found["/".join(kept)] = item
    return found


def _mode(item: zipfile.ZipInfo) -> int:
    """Return st_mode, which an archive made on unix has in the upper half (APPNOTE 4.4.15); 0 where it does not say."""
    return item.external_attr >> 16


def _is_link(item: zipfile.ZipInfo) -> bool:
    return not item.is_dir() and stat.S_ISLNK(_mode(item))


def _write(pack: zipfile.ZipFile, item: zipfile.ZipInfo, path: Path, root: Path) -> None:
    directory = (path if item.is_dir() else path.parent).resolve()
    if root not in (directory, *directory.parents):
        raise Refused(item.filename, f"a link on its way leads to {directory}, out of {root}")
    directory.mkdir(parents=True, exist_ok=True)
    if item.is_dir():
        return
    if path.is_symlink() or path.exists():
        path.unlink()
    if _is_link(item):
        path.symlink_to(pack.read(item).decode())
        _stamp(path, item)
        return
    with pack.open(item) as source, path.open("xb") as copy:
        shutil.copyfileobj(source, copy)
    path.chmod(0o644)
    _finish(path, item)


def _finish(path: Path, item: zipfile.ZipInfo) -> None:
    if permissions := stat.S_IMODE(_mode(item)):
        path.chmod(permissions)
    _stamp(path, item)


def _stamp(path: Path, item: zipfile.ZipInfo) -> None:
    """Set the time that the archive states; a zip has no zone, and UTC is the same everywhere."""
    with contextlib.suppress(ValueError):  # a zip may hold month 0
        seconds = calendar.timegm((*item.date_time, 0, 0, 0))
        os.utime(path, (seconds, seconds), follow_symlinks=False)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
