"""Zips as vendors make them: modes and links stand in the external attributes."""

from __future__ import annotations

import io
import stat
import zipfile

FILE, LINK, DIRECTORY = stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR
DOS_ARCHIVE = 0x20
TIME = (2024, 2, 29, 12, 30, 58)


def packed(*members: tuple[str, bytes, int]) -> bytes:
    """Return a zip of (name, content, st_mode), 0 as made on Windows; the content of a link is where it leads to."""
    spool = io.BytesIO()
    with zipfile.ZipFile(spool, "w", zipfile.ZIP_DEFLATED) as pack:
        for name, content, mode in members:
            item = zipfile.ZipInfo(name, TIME)
            item.create_system = 3 if mode else 0
            item.external_attr = mode << 16 or DOS_ARCHIVE
            pack.writestr(item, content, zipfile.ZIP_DEFLATED)
    return spool.getvalue()
