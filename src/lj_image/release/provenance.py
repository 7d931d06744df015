"""Where and when a release comes from: SOURCE_DATE_EPOCH, the last commit that touched it, or its own date."""

from __future__ import annotations

import os
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path


def revision_and_time(folder: Path, release_date: str | None = None) -> tuple[str, str]:
    """Return the revision of a folder and its time (RFC 3339, UTC).

    The revision is the last commit that touched the folder, with `-dirty` for changes that are not committed, or
    `unknown` outside git. SOURCE_DATE_EPOCH (reproducible-builds.org) goes before the commit's time; outside git, the
    release's date (YYYY-MM-DD) stands for it, and without one the current time: nobody believes 1970.
    """
    revision, committed = _last_commit(folder)
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch and epoch.isdigit():
        return revision, _rfc3339(int(epoch))
    if committed is not None:
        return revision, _rfc3339(committed)
    return revision, f"{release_date}T00:00:00Z" if release_date else _rfc3339(int(time.time()))


def _last_commit(folder: Path) -> tuple[str, int | None]:
    answer = _git(folder, "log", "-1", "--format=%H %ct", "--", ".")
    if not answer:
        return "unknown", None
    revision, _, seconds = answer.partition(" ")
    dirty = "-dirty" if _git(folder, "status", "--porcelain", "--", ".") else ""
    return revision + dirty, int(seconds)


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    except OSError:  # no git on this machine
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _rfc3339(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
