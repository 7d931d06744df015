"""What a locked distribution requires, in its own words: its core metadata, with markers held against the base."""

from __future__ import annotations

import email.parser
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from lj_image.catalog.release import Release
from lj_image.lock.built_wheels import built_wheels
from lj_image.lock.lock import Artifact
from lj_image.lock.store import ArtifactStore
from lj_image.lock.tags import MACHINES

MOST_BYTES: Final = 8 * 1024 * 1024
"""No real metadata is larger; a broken archive may claim to be."""


def stored_metadata(artifact: Artifact, store: ArtifactStore) -> str | None:
    """Return the core metadata of a file in the store; None when it is not here, or says nothing.

    For a source distribution, that of the wheel which was built from it here, if there is one.
    """
    path = store.path(artifact.sha256)
    try:
        return _of_source(artifact, store) if artifact.kind == "sdist" else _from_wheel(path)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, tarfile.TarError):
        return None


def _of_source(artifact: Artifact, store: ArtifactStore) -> str | None:
    for wheel in built_wheels(store.root.parent):
        if wheel.source_sha256 == artifact.sha256 and store.path(wheel.sha256).exists():
            return _from_wheel(store.path(wheel.sha256))
    return _from_sdist(store.path(artifact.sha256))


def _from_wheel(path: Path) -> str | None:
    with zipfile.ZipFile(path) as wheel:
        names = [item for item in wheel.infolist() if item.filename.count("/") == 1]
        found = next((item for item in names if item.filename.endswith(".dist-info/METADATA")), None)
        return wheel.read(found).decode() if found and found.file_size <= MOST_BYTES else None


def _from_sdist(path: Path) -> str | None:
    """Read PKG-INFO; its requirements count only from metadata 2.2 on, when they are not dynamic (PEP 643)."""
    with tarfile.open(path) as sdist:
        for member in sdist:
            if member.name.count("/") == 1 and member.name.endswith("/PKG-INFO") and member.size <= MOST_BYTES:
                content = sdist.extractfile(member)
                text = content.read().decode() if content else ""
                headers = email.parser.HeaderParser().parsestr(text)
                dynamic = {item.casefold() for item in headers.get_all("Dynamic") or ()}
                settled = str(headers["Metadata-Version"]) >= "2.2" and "requires-dist" not in dynamic
                return text if settled else None
    return None


def requirements_on(
    name: str, metadata: str, environment: Mapping[str, str], extras: Iterable[str] = ()
) -> tuple[Requirement, ...]:
    """Return what a distribution requires of another one, by that one's normalised name.

    `extras` are those that a component asks for. Requirements of others count only where nothing else asks for it:
    a lock does not say which extras its distributions ask of each other.
    """
    found = [item for item in _requirements(metadata) if canonicalize_name(item.name) == name]
    used = extras_in_use(metadata, environment, extras)
    asked = [item for item in found if _holds(item, environment, ("", *used))]
    return tuple(asked or [item for item in found if _holds(item, environment, _provided(metadata))])


def extras_in_use(metadata: str, environment: Mapping[str, str], extras: Iterable[str]) -> frozenset[str]:
    """Return extras with those that they ask for in turn: `tool[all]` may be `tool[fast,safe]`. Names normalised."""
    own = canonicalize_name(str(email.parser.HeaderParser().parsestr(metadata)["Name"]))
    on_itself = [item for item in _requirements(metadata) if canonicalize_name(item.name) == own]
    used = {canonicalize_name(name) for name in extras}
    waiting = list(used)
    while waiting:
        extra = waiting.pop()
        asked = (item.extras for item in on_itself if _holds(item, environment, (extra,)))
        more = {canonicalize_name(name) for names in asked for name in names} - used
        used |= more
        waiting.extend(more)
    return frozenset(used)


def extras_behind(item: Requirement, environment: Mapping[str, str], extras: Iterable[str]) -> tuple[str, ...]:
    """Return those of some extras without which a requirement would not hold; none when it holds in any case."""
    if _holds(item, environment, ("",)):
        return ()
    return tuple(sorted(name for name in extras if _holds(item, environment, (name,))))


def provided_extras(metadata: str) -> tuple[str, ...]:
    """Return the extras that a distribution has, by normalised names."""
    return tuple(canonicalize_name(name) for name in _provided(metadata))


def _requirements(metadata: str) -> Iterable[Requirement]:
    for line in email.parser.HeaderParser().parsestr(metadata).get_all("Requires-Dist") or ():
        try:
            yield Requirement(line)
        except InvalidRequirement:  # old metadata holds some; pip and uv pass over them too
            continue


def unmet(
    metadata: str, locked: Mapping[str, str], environment: Mapping[str, str], extras: Iterable[str] = ()
) -> tuple[Requirement, ...]:
    """Return the requirements of a distribution that locked versions do not satisfy; what is not locked may come."""
    held = [item for item in _requirements(metadata) if canonicalize_name(item.name) in locked]
    used = extras_in_use(metadata, environment, extras)
    asked = (item for item in held if _holds(item, environment, ("", *used)))
    return tuple(item for item in asked if excluding((item,), locked[canonicalize_name(item.name)]))


def _holds(item: Requirement, environment: Mapping[str, str], extras: Iterable[str]) -> bool:
    """Say whether a requirement holds with one of some extras; packaging normalises names on both sides (PEP 685)."""
    return item.marker is None or any(item.marker.evaluate({**environment, "extra": name}) for name in extras)


def _provided(metadata: str) -> tuple[str, ...]:
    return tuple(email.parser.HeaderParser().parsestr(metadata).get_all("Provides-Extra") or ())


def marker_environment(release: Release) -> dict[str, str]:
    """Return the values of markers (PEP 508) inside the base, which is not the machine that we run on."""
    python = release.base.facts.python
    return {
        "implementation_name": "cpython",
        "implementation_version": python,
        "os_name": "posix",
        "platform_machine": MACHINES[release.platform.architecture],
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_system": "Linux",
        "platform_version": "",
        "python_full_version": python,
        "python_version": ".".join(python.split(".")[:2]),
        "sys_platform": "linux",
    }


def excluding(requirements: Iterable[Requirement], version: str) -> tuple[Requirement, ...]:
    """Return the requirements that a version does not satisfy; a pre-release is judged by its number."""
    return tuple(item for item in requirements if not item.specifier.contains(version, prereleases=True))
