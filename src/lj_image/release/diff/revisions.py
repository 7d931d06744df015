"""The catalog as it was at a git revision, in a folder that is gone afterwards."""

from __future__ import annotations

import io
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from lj_image.catalog.release import Platform, Release
from lj_image.config import Config
from lj_image.errors import LjImageError, ManifestError, UsageError


@contextmanager
def catalog_at(images: Path, revision: str) -> Iterator[Path]:
    """Give the folder of images as it was at a revision, with `templates/` beside it where it had one.

    Raises UsageError outside git and for a revision that git does not know. Errors raised within are said to be of
    that revision, and their places are written as git writes them.
    """
    project = images.resolve().parent
    archive = _archive(project, revision, images.name)
    with tempfile.TemporaryDirectory(prefix="lj-image-revision-") as folder:
        _unpack(archive, Path(folder))
        try:
            yield Path(folder) / images.name
        except LjImageError as error:
            _say_where(error, f"{folder}/", revision)
            raise


def _archive(project: Path, revision: str, images: str) -> bytes:
    commit = _commit(project, revision)
    listed = _git(project, "ls-tree", "--name-only", commit, images, "templates").stdout.decode().split("\n")
    if images not in listed:
        raise UsageError(
            f"the revision {revision} has no folder {images}/", hint="name one that was made after the catalog was"
        )
    wanted = [name for name in (images, "templates") if name in listed]
    return _git(project, "archive", "--format=tar", commit, *wanted).stdout


def _commit(project: Path, revision: str) -> str:
    """Return the full id of the commit that a revision names."""
    inside = _git(project, "rev-parse", "--show-toplevel")
    if inside.returncode != 0:
        raise UsageError(
            f"{project} is not in git, so nothing in it has revisions",
            hint=f"leave out @{revision}; git says: {inside.stderr.decode(errors='replace').strip()}",
        )
    found = _git(project, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if found.returncode != 0 or not revision:
        raise UsageError(
            f"git knows no revision {revision!r}",
            hint="a branch, tag or commit of this repository; in a shallow clone first: git fetch origin REVISION",
        )
    return found.stdout.decode().strip()


def _git(project: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["git", *arguments], cwd=project, capture_output=True, check=False)
    except OSError as error:
        raise UsageError(f"git cannot be run: {error.strerror}", hint="install git, or leave out @REVISION") from None


def _unpack(archive: bytes, folder: Path) -> None:
    import tarfile  # late: most comparisons are of what lies in the working tree

    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        if hasattr(tarfile, "data_filter"):  # in 3.11 since 3.11.4
            tar.extractall(folder, filter="data")
        else:
            tar.extractall(folder)


def _say_where(error: LjImageError, folder: str, revision: str) -> None:
    """Say of an error at which revision it is, without the name of a folder that nobody can open any more."""
    error.message = f"at {revision}: {error.message.replace(folder, '')}"
    error.hint = error.hint.replace(folder, "") if error.hint else None
    others = error.others if isinstance(error, ManifestError) else ()
    for item in (error, *others):
        if item.location is not None and item.location.file.startswith(folder):
            item.location = replace(item.location, file=f"{revision}:{item.location.file.removeprefix(folder)}")


def resolver_in(images: Path, config: Config) -> Callable[..., Release]:
    """Return a function that resolves releases of the catalog in a folder, as the command line does elsewhere."""
    from lj_image.catalog.catalog import Catalog
    from lj_image.catalog.resolve import resolve

    catalog = Catalog(images)

    def resolved(name: str, variant: str | None, /, *, platform: str | None, **options: Any) -> Release:
        parsed = Platform.parse(platform) if platform else None
        return resolve(catalog, config, name, variant=variant, platform=parsed, **options)

    return resolved
