"""`lj-image history`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from lj_image.cli.app import App

if TYPE_CHECKING:
    from lj_image.release.history import Kept


@click.command("history")
@click.argument("release", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(app: App, release: str | None, as_json: bool) -> int:
    """Show what was built, verified and pushed on this machine, newest first; of each release its last build.

    Exit code 1 when a record cannot be read; the others are shown all the same.

    \b
    lj-image history
    lj-image history 25.02 --json
    """
    from lj_image.release.history import history

    found = history(app.config.cache_dir, release)
    if as_json:
        refused = [{"message": item.message, "at": str(item.location)} for item in found.refused]
        app.print_json({"records": [item.to_json() for item in found.kept], "refused": refused})
    elif found.kept:
        header = ("IMAGE", "RELEASE", "VARIANT", "BUILT (UTC)", "IMAGE ID", "GIB", "VERIFIED", "PUSHED")
        app.print_table(header, [row for item in found.kept for row in _rows(item)])
    else:
        app.say("nothing was built on this machine")
    for line in (line for item in found.refused for line in item.lines()):
        app.say(line)
    return 1 if found.refused else 0


def _rows(item: Kept) -> Iterator[tuple[str, ...]]:
    """Yield a row for a record, and one more for each further place that it was pushed to."""
    record, built = item.record, item.record.built
    variant = item.key.removeprefix(f"{record.release}-")
    tried = "".join(f" {name}={version}" for name, version in built.overridden.items()) if built else ""
    at, image_id = (_minute(built.at), built.image_id.removeprefix("sha256:")[:12]) if built else ("-", "-")
    size = f"{built.size_bytes / 1024**3:.2f}" if built else "-"
    first, *others = [f"{_minute(one.at)}  {one.reference}" for one in item.pushed_now()] or ["no"]
    yield record.image, record.release, variant + tried, at, image_id, size, item.proof, first
    yield from (("",) * 7 + (other,) for other in others)


def _minute(at: str) -> str:
    """Shorten 2025-03-01T12:34:56+00:00 to what a person reads; all times are UTC."""
    return at[:16].replace("T", " ")
