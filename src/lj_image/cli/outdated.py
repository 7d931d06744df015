"""`lj-image outdated`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from lj_image.cli.app import App

if TYPE_CHECKING:
    from lj_image.catalog.release import Release
    from lj_image.lock.outdated import Standing


@click.command("outdated")
@click.argument("release", required=False)
@click.option("--variant", help="The variant; by default the first one that is configured.")
@click.option("--all", "every", is_flag=True, help="Ask for every locked distribution, not only what components name.")
@click.option("--pre", is_flag=True, help="Take pre-releases for newer, too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(app: App, release: str | None, variant: str | None, every: bool, pre: bool, as_json: bool) -> None:
    """Say what the indexes have that is newer, and what holds each distribution back; changes nothing.

    Without RELEASE, the one whose image was built last.

    \b
    lj-image outdated 25.02
    lj-image outdated 25.02 --variant open --all
    """
    from lj_image.cli.last import last_built
    from lj_image.lock.outdated import not_asked, outdated
    from lj_image.lock.progress import progress_for

    if release is None:
        release, variant = last_built(app)
    resolved = app.release(release, variant)
    lock = app.lock(resolved)
    found = outdated(resolved, lock, app.config, app.store, every=every, pre=pre, progress=progress_for())
    if as_json:
        standings = [item.to_json() for item in found]
        app.print_json({"release": lock.key, "distributions": standings, "not_asked": not_asked(resolved)})
        return
    rows = list(_rows(resolved, [item for item in found if item.is_outdated or item.unknown]))
    if rows:
        app.print_table(("COMPONENT", "DISTRIBUTION", "LOCKED", "NEWEST", "HELD BACK BY"), rows)
    for line in _summary(found, not_asked(resolved)):
        app.print(line)


def _rows(release: Release, standings: Iterable[Standing]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each distribution, and one more for each further thing that holds it back."""
    from lj_image.lock.outdated import way_forward

    for item in standings:
        reasons = [hold.text for hold in item.holds]
        command = way_forward(release, item)
        reasons += [f"nothing known; try: {command}"] if command else []
        first, *others = [item.unknown] if item.unknown else reasons
        newest = item.newest or ("?" if item.unknown else "-")
        yield item.component, item.name, item.locked, newest, first
        yield from (("", "", "", "", other) for other in others)


def _summary(standings: Iterable[Standing], not_asked: tuple[str, ...]) -> Iterator[str]:
    found = tuple(standings)
    newer = sum(item.is_outdated for item in found)
    unknown = sum(item.unknown is not None for item in found)
    words = f"{newer} of {len(found)} distributions have newer versions"
    yield f"{words}; {unknown} could not be asked for" if unknown else words
    if not_asked:
        yield f"no index lists the versions of: {', '.join(not_asked)}"
