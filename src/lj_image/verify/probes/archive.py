"""Archives: each member is at its place, with its content, mode and owner; that proves the locked archive's version."""

from __future__ import annotations

import hashlib
import stat
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final

from lj_image.catalog.release import ArchiveSource, Component
from lj_image.errors import ArtifactError, Location
from lj_image.verify.agent import Answer, Question
from lj_image.verify.probes.files import finding_of
from lj_image.verify.probes.probe import Context, Finding, Probe, not_probed

_BLOCK_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Member:
    """One file or link of an archive, as it must be found."""

    path: str
    mode: int | None
    """None where the archive does not say (a zip made on Windows) or it means nothing (a link)."""
    sha256: str | None
    link: str | None


def ask(component: Component, context: Context) -> Mapping[str, Question]:
    """Ask for the state of each member."""
    if context.archive is None:
        return {}
    return {"files": {"op": "files", "paths": [member.path for member in _members_of(component, context.archive)]}}


def read(component: Component, context: Context, answers: Mapping[str, Answer]) -> Finding:
    """Compare each member."""
    if context.archive is None:
        return not_probed(component.version, "its archive is not in the artifact store of this machine")
    answer = answers["files"]
    if answer.error is not None:
        return Finding(component.version, None, kept=False, message=answer.error)
    members = _members_of(component, context.archive)
    wrong = [reason for member in members if (reason := _difference(member, answer.value[member.path]))]
    return finding_of(component, wrong, len(members))


def _difference(member: Member, found: Mapping[str, Any] | None) -> str | None:
    if found is None:
        return f"{member.path} is missing"
    if (found["sha256"], found["link"]) != (member.sha256, member.link):
        return f"{member.path} has other content"
    if member.mode is not None and found["mode"] != member.mode:
        return f"{member.path} has mode {found['mode']:04o} instead of {member.mode:04o}"
    if (found["uid"], found["gid"]) != (0, 0):
        return f"{member.path} belongs to {found['uid']}:{found['gid']} instead of root"
    return None


def _members_of(component: Component, archive: Path) -> tuple[Member, ...]:
    assert isinstance(component.source, ArchiveSource)
    source = component.source
    return members(archive, source.path, source.strip_components, is_zip=source.is_zip)


@cache
def members(archive: Path, root: str, strip_components: int, *, is_zip: bool = False) -> tuple[Member, ...]:
    """Return the files and links that unpacking an archive gives; of several with one path, the last.

    What it is has to be said: in the store it has no name, and a tar whose last member is a zip looks like one.
    """
    try:
        found = _zip_members(archive) if is_zip else _tar_members(archive)
        placed = {path: member for member in found if (path := _placed(member.path, root, strip_components))}
    except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile) as error:
        raise ArtifactError(f"the archive cannot be read: {error}", location=Location(str(archive))) from None
    return tuple(Member(path, item.mode, item.sha256, item.link) for path, item in sorted(placed.items()))


def _placed(name: str, root: str, strip_components: int) -> str | None:
    kept = [part for part in PurePosixPath(name).parts if part not in ("/", ".")][strip_components:]
    return str(PurePosixPath(root, *kept)) if kept else None


def _tar_members(archive: Path) -> Iterator[Member]:
    digests: dict[str, tuple[int, str]] = {}
    with tarfile.open(archive) as tar:
        for item in tar:
            if item.issym():
                yield Member(item.name, None, None, item.linkname)
            elif item.islnk() and item.linkname in digests:
                mode, digest = digests[item.linkname]
                yield Member(item.name, mode, digest, None)
            elif item.isfile() and (content := tar.extractfile(item)) is not None:
                digests[item.name] = (item.mode & 0o7777, _sha256(content))
                yield Member(item.name, *digests[item.name], None)


def _zip_members(archive: Path) -> Iterator[Member]:
    with zipfile.ZipFile(archive) as pack:
        for item in pack.infolist():
            if item.is_dir():
                continue
            mode = item.external_attr >> 16  # APPNOTE 4.4.15; the upper half is st_mode when made on unix
            with pack.open(item) as content:
                if stat.S_ISLNK(mode):
                    yield Member(item.filename, None, None, content.read().decode())
                else:
                    yield Member(item.filename, stat.S_IMODE(mode) or None, _sha256(content), None)


def _sha256(content: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while block := content.read(_BLOCK_BYTES):
        digest.update(block)
    return digest.hexdigest()


PROBE = Probe(ask, read)
