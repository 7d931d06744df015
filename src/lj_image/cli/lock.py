"""`lj-image lock`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from lj_image.cli.app import App
from lj_image.errors import LockError

if TYPE_CHECKING:
    from pathlib import Path

    from lj_image.catalog.release import Release
    from lj_image.lock.lock import Lock


@click.command("lock")
@click.argument("release", required=False)
@click.option("--variant", help="The variant; by default every one whose sources are configured.")
@click.option("--platform", metavar="OS/ARCH", help="Such as linux/arm64.")
@click.option("--check", is_flag=True, help="Change nothing; exit code 2 when a lock is missing or stale.")
@click.option("--upgrade", "upgrades", multiple=True, metavar="NAME", help="Let a locked distribution move; repeat it.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(
    app: App,
    release: str | None,
    variant: str | None,
    platform: str | None,
    check: bool,
    upgrades: tuple[str, ...],
    as_json: bool,
) -> int:
    """Resolve a release to exact files and write its lock; without RELEASE, every release.

    Versions that are locked stay as they are unless --upgrade names them. --check needs no network.

    \b
    lj-image lock 25.02 --variant open
    lj-image lock --check
    """
    releases = _releases(app, release, variant, platform)
    rows = [_check(app, item, as_json) if check else _lock(app, item, upgrades, as_json) for item in releases]
    if as_json:
        app.print_json(rows)
    return 0 if all(row["fresh"] for row in rows) else 2


def _releases(app: App, release: str | None, variant: str | None, platform: str | None) -> list[Release]:
    """Return what to lock: the named release, or each one that can be had."""
    if release is not None and variant is not None:
        return [app.release(release, variant, platform=platform)]
    from lj_image.catalog.release import Platform
    from lj_image.catalog.selection import buildable

    wanted = Platform.parse(platform) if platform else Platform()
    found = list(buildable(app.catalog, app.config, release, variant, wanted))
    if release is not None and not found:
        app.release(release, platform=platform)  # raises, with the reason of each variant
    if not found:
        app.say(f"no release can be had for {wanted} with this config: nothing to do")
    return found


def _check(app: App, release: Release, as_json: bool) -> dict[str, Any]:
    """Say whether a lock is fresh; what is wrong with it is a finding here, not an error."""
    from lj_image.lock.lockfile import lock_path
    from lj_image.lock.staleness import require_fresh

    lines = [f"{release.image} {release.key}: the lock is fresh"]
    finding: LockError | None = None
    try:
        require_fresh(release, lock_path(release))
    except LockError as error:
        finding, lines = error, list(error.lines())
    for line in () if as_json else lines:
        app.print(line)
    return _row(release) | {"fresh": finding is None, "finding": finding and finding.message}


def _lock(app: App, release: Release, upgrades: tuple[str, ...], as_json: bool) -> dict[str, Any]:
    from lj_image.lock.lockfile import lock_path, write_lock
    from lj_image.lock.progress import progress_for
    from lj_image.lock.resolve import resolve

    path = lock_path(release)
    previous = _previous(app, path)
    found = resolve(release, app.config, previous=previous, upgrade=upgrades, progress=progress_for())
    write_lock(found, path)
    size_bytes = sum(item.size_bytes for item in found.artifacts())
    if not as_json:
        app.print(f"{path}: {len(found.artifacts())} files, {size_bytes / 1024**2:,.1f} MiB")
    return _row(release) | {"fresh": True, "files": len(found.artifacts()), "size_bytes": size_bytes}


def _row(release: Release) -> dict[str, Any]:
    from lj_image.lock.lockfile import lock_path

    return {"image": release.image, "key": release.key, "path": str(lock_path(release))}


def _previous(app: App, path: Path) -> Lock | None:
    """Return the lock to keep versions of; none where there is none that can be believed."""
    from lj_image.lock.lockfile import read_lock

    if not path.exists():
        return None
    try:
        return read_lock(path)
    except LockError as error:  # every other command sends the user here, so here it must end
        app.say(f"{path}: {error.message}; resolving anew")
        return None
