"""Files of ours -> entries: a tree of the image's folder, the constraints, and the folder that containers start in."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from lj_image.builders.oci.entries import (
    EARLIEST_TIME,
    FILE_MODE,
    FOLDER_MODE,
    Content,
    Entry,
    File,
    Folder,
    Streamed,
    Written,
)
from lj_image.catalog.release import FilesSource
from lj_image.errors import BuildError, Location
from lj_image.plan import CONSTRAINTS_PATH, ConstraintsLayer, tree_files

WRITTEN_BYTES: Final = 64 * 1024
"""A file up to this size is read at once; one that two components bring can then be seen to be the same."""


def tree_entries(source: FilesSource) -> Iterator[Entry]:
    """Yield what `COPY <tree>/ <path>/` of the context leaves, in the order of paths; raises BuildError.

    The context holds regular files, and the files that links lead to; empty folders and links to folders are none. A
    folder below the path gets the context's mode. The path itself stays as the base has it, so it is no entry. A
    checkout's times are those of the machine, so no time is kept.
    """
    owner, target = f"{source.tree.name}/", source.path.strip("/")
    folders: set[str] = set()
    for file in tree_files(source.tree):
        relative = file.relative_to(source.tree).as_posix()
        for folder in _folders_above(relative):
            if folder not in folders:
                folders.add(folder)
                yield Folder(posixpath.join(target, folder), FOLDER_MODE, EARLIEST_TIME, owner)
        yield from _file(file, posixpath.join(target, relative), owner)


def constraints_entries(layer: ConstraintsLayer, workdir: str | None) -> Iterator[Entry]:
    """Yield the constraints as COPY leaves them, and the folder that WORKDIR makes where the base has none."""
    content = Written(layer.text.encode())
    yield File(CONSTRAINTS_PATH.strip("/"), FILE_MODE, EARLIEST_TIME, content, layer.title)
    if folder := posixpath.normpath(f"/{workdir or ''}").strip("/"):
        yield Folder(folder, FOLDER_MODE, EARLIEST_TIME, "workdir")


def _file(file: Path, path: str, owner: str) -> Iterator[File]:
    try:
        reader = file.open("rb")
    except OSError as error:
        raise BuildError(
            f"a file of the image's folder cannot be read: {error.strerror}", location=Location(str(file))
        ) from None
    with reader:
        found = os.fstat(reader.fileno())
        is_small = found.st_size <= WRITTEN_BYTES
        content: Content = Written(reader.read()) if is_small else Streamed(found.st_size, reader)
        yield File(path, found.st_mode & 0o777, EARLIEST_TIME, content, owner)


def _folders_above(path: str) -> Iterator[str]:
    """Yield the folders that a relative path lies in, the uppermost first.

    >>> list(_folders_above("a/b/file"))
    ['a', 'a/b']
    """
    parts = path.split("/")[:-1]
    yield from ("/".join(parts[: count + 1]) for count in range(len(parts)))
