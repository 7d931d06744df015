"""A project from nothing: the files of a first image, which builds as it stands."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from string import Template
from typing import Final

from lj_image.errors import UsageError
from lj_image.manifest.scalars import version_text

_SKELETON: Final = Path(__file__).parents[1] / "skeleton"
_NAME: Final = re.compile(r"[a-z0-9]+([._-][a-z0-9]+)*")
_BASE: Final = "base-os"
_UNFINISHED: Final = ".lj-image-init-"


def name_from(folder: Path) -> str:
    """Return an image's name after a folder's; raises UsageError for one of which nothing can be made."""
    name = "-".join(re.findall(r"[a-z0-9]+", folder.absolute().name.lower()))
    return require_name(name)


def require_name(name: str) -> str:
    """Return a name that an image may have; raises UsageError for any other."""
    if _NAME.fullmatch(name) is None:
        raise UsageError(f"{name!r} is no name of an image", hint="--name: lower case letters, digits and single . _ -")
    if name == _BASE:
        raise UsageError(f"{name} is the base below the image", hint="give the image another name: --name")
    return name


def skeleton(name: str, release: str) -> dict[str, str]:
    """Return path -> text of the files of a project with one image and one release."""
    paths = sorted(path for path in _SKELETON.rglob("*") if path.is_file())
    return {_path(path, name, release): _text(path, name, release) for path in paths}


def _text(path: Path, name: str, release: str) -> str:
    written = version_text(name) if path.suffix == ".yaml" else name  # an image may be called 2025
    return Template(path.read_text(encoding="utf-8")).substitute(name=written, release=release)


def _path(path: Path, name: str, release: str) -> str:
    relative = path.relative_to(_SKELETON).as_posix()
    named = relative.replace("NAME", name).replace("RELEASE", release)
    return f".{named}" if named == "gitignore" else named  # packaging tools would obey a .gitignore in the package


def write_project(folder: Path, files: Mapping[str, str]) -> None:
    """Write files into a folder that is absent or empty, all or none; a repository without files is empty, too.

    Raises UsageError for any other folder.
    """
    _require_empty(folder)
    with _made(folder), tempfile.TemporaryDirectory(prefix=_UNFINISHED, dir=folder) as scratch:
        for path, text in files.items():
            target = Path(scratch, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8", newline="\n")
        _move(Path(scratch), folder)


def _require_empty(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is no folder", hint="name one that is empty or that does not exist")
    found = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    found = [name for name in found if name != ".git" and not name.startswith(_UNFINISHED)]
    if found:
        named = ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
        raise UsageError(f"{folder} is not empty: {named}", hint="name a new folder: lj-image init DIR")


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """Make a folder, and take it away again when what is done in it fails."""
    existed = folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.glob(f"{_UNFINISHED}*"):  # by a run that was killed
        shutil.rmtree(left)
    try:
        yield
    except BaseException:
        if not existed:
            folder.rmdir()
        raise


def _move(source: Path, folder: Path) -> None:
    moved: list[Path] = []
    try:
        for path in sorted(source.iterdir(), reverse=True):
            moved.append(path.rename(folder / path.name))
    except BaseException:
        for path in moved:
            path.rename(source / path.name)
        raise
