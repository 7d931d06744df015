"""A vendor's archive -> entries: what unpacking it as the Dockerfile does would leave."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lj_image.builders.oci.entries import Entry
from lj_image.catalog.release import ArchiveSource


def archive_entries(path: Path, source: ArchiveSource) -> Iterator[Entry]:
    """Yield the entries of an archive, read forward once; content has to be read before the next one is asked for.

    The folder itself is an entry only where the archive states it. Raises BuildError that names archive and member for
    whatever is damaged, would leave the folder, or cannot be in a layer.
    """
    if source.is_zip:
        from lj_image.builders.oci.zip_archive import zip_entries

        return zip_entries(path, source)
    from lj_image.builders.oci.tar_archive import tar_entries

    return tar_entries(path, source)
