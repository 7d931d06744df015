"""Whether a lock still answers what its release asks; told without network."""

from __future__ import annotations

import re
from pathlib import Path

from lj_image.catalog.release import Release
from lj_image.errors import Location, LockError
from lj_image.lock.inputs import inputs_of
from lj_image.lock.lock import Lock
from lj_image.lock.lockfile import command_for, read_lock

_SHOWN = 8
"""Lines of difference in an error; `lj-image lock --check` prints them all."""


def differences(release: Release, lock: Lock) -> tuple[str, ...]:
    """Return what the release asks otherwise than the lock answers: `- require x==1`, `+ require x==2`."""
    asked, answered = set(inputs_of(release)), set(lock.inputs)
    changed = [(line, "-") for line in answered - asked] + [(line, "+") for line in asked - answered]
    changed.sort(key=lambda item: (_subject(item[0]), item[1] == "+", item[0]))
    return tuple(f"{sign} {line}" for line, sign in changed)


def require_fresh(release: Release, path: Path) -> Lock:
    """Return the lock of a release; raises LockError when it is missing, edited or stale."""
    lock = read_lock(path, image=release.image_in_commands)
    changed = differences(release, lock)
    if lock.key == release.key and not changed:
        return lock
    more = (f"… and {len(changed) - _SHOWN} more lines",) if len(changed) > _SHOWN else ()
    raise LockError(
        f"the lock of {release.key} is stale: {_summary(release, lock, changed)}",
        hint="\n".join((*changed[:_SHOWN], *more, f"run: {command_for(release)}")),
        location=Location(str(path)),
    )


def _summary(release: Release, lock: Lock, changed: tuple[str, ...]) -> str:
    if lock.key != release.key:
        return f"it is that of {lock.key}"
    return f"the release asks otherwise in {len(changed)} line{'s' if len(changed) != 1 else ''}"


def _subject(line: str) -> str:
    """Return what a line is about, so that the old and the new version of one thing stand together."""
    return re.split(r"==|\[", " ".join(line.split()[:2]))[0]
