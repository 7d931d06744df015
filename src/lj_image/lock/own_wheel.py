"""A project of ours -> its wheel, written here: no build backend, network or engine, and the same bytes anywhere.

Stored, not compressed, since compressors differ; the layer that it becomes is compressed anyway. Its README is not in
it: a sentence about a program does not make another image.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from lj_image.catalog.names import normalised
from lj_image.catalog.project import OWN_INDEX, Project
from lj_image.errors import BuildError
from lj_image.lock.lock import Artifact, LockedDistribution

_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The first moment that a zip can say."""
_MODE: Final = 0o100644 << 16
_UNIX: Final = 3
# Binary distribution format 1.0, "File contents".
_WHEEL: Final = "Wheel-Version: 1.0\nGenerator: lj-image\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def own_distribution(project: Project, component: str) -> LockedDistribution:
    """Return what the wheel of a project is, as if a lock said it; raises BuildError as `wheel_of` does."""
    content = wheel_of(project)
    artifact = Artifact(wheel_name(project), len(content), hashlib.sha256(content).hexdigest(), "wheel")
    return LockedDistribution(project.name, project.version, artifact, OWN_INDEX, component)


def wheel_name(project: Project) -> str:
    """Return the file name: name and version escaped, for any Python 3 ("File name convention")."""
    return f"{_stem(project)}-py3-none-any.whl"


def wheel_of(project: Project) -> bytes:
    """Return the wheel's bytes, decided by its files' names and contents; raises BuildError when one is absent."""
    folder = f"{_stem(project)}.dist-info"
    members = dict(sorted(_files(project)))
    members[f"{folder}/METADATA"] = _metadata(project).encode()
    members[f"{folder}/WHEEL"] = _WHEEL.encode()
    if project.scripts:
        lines = "".join(f"{name} = {target}\n" for name, target in project.scripts)
        members[f"{folder}/entry_points.txt"] = f"[console_scripts]\n{lines}".encode()
    members[f"{folder}/RECORD"] = _record(members, f"{folder}/RECORD")
    return _zipped(members)


def unmet(project: Project, versions: Mapping[str, str]) -> tuple[str, ...]:
    """Return the requirements of a project that an image with these distributions does not meet.

    Those that depend on an environment are left to `pip check` in the image.
    """
    from packaging.requirements import Requirement  # late: a plan needs none

    wanted = [item for item in map(Requirement, project.requires) if item.marker is None]
    return tuple(
        str(item)
        for item in wanted
        if (version := versions.get(normalised(item.name))) is None
        or not item.specifier.contains(version, prereleases=True)
    )


def _stem(project: Project) -> str:
    return f"{project.name.replace('-', '_')}-{re.sub(r'[^A-Za-z0-9.+!]+', '_', project.version)}"


def _files(project: Project) -> Iterator[tuple[str, bytes]]:
    """Yield name in the wheel and content of each file; what editors, tools and Python leave behind is not ours."""
    for package in project.packages:
        root = project.folder / package
        found = [path for path in root.rglob("*") if path.is_file() and _is_ours(path.relative_to(root))]
        if not found:
            raise _absent(project, package)
        yield from ((path.relative_to(root.parent).as_posix(), path.read_bytes()) for path in found)
    for source, target in project.included:
        try:
            yield target, (project.folder / source).read_bytes()
        except OSError:
            raise _absent(project, source) from None


def _is_ours(path: Path) -> bool:
    hidden = any(part.startswith(".") or part == "__pycache__" for part in path.parts)
    return not hidden and path.suffix != ".pyc" and not path.name.endswith("~")


def _absent(project: Project, name: str) -> BuildError:
    return BuildError(
        f"{project.name} {project.version}: {name} is to be in its wheel, and is not there",
        hint=f"looked for {project.folder / name}",
    )


def _metadata(project: Project) -> str:
    """Return core metadata 2.1, which every pip in our bases reads."""
    headers = [
        ("Metadata-Version", "2.1"),
        ("Name", project.name),
        ("Version", project.version),
        ("Summary", project.summary),
        ("License", project.licence),
        ("Requires-Python", project.requires_python),
        *(("Requires-Dist", requirement) for requirement in project.requires),
    ]
    return "".join(f"{name}: {text}\n" for name, text in headers if text)


def _record(members: dict[str, bytes], own: str) -> bytes:
    rows = [(name, _digest(content), str(len(content))) for name, content in members.items()]
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([*rows, (own, "", "")])
    return text.getvalue().encode()


def _digest(content: bytes) -> str:
    return f"sha256={base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b'=').decode()}"


def _zipped(members: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as wheel:
        for name, content in members.items():
            item = zipfile.ZipInfo(name, _EPOCH)
            item.external_attr, item.create_system = _MODE, _UNIX
            wheel.writestr(item, content)
    return target.getvalue()
