"""`lj-image fetch`."""

from __future__ import annotations

import click

from lj_image.cli.app import App


@click.command("fetch")
@click.argument("release")
@click.option("--variant", help="The variant; by default the first one that is configured.")
@click.pass_obj
def command(app: App, release: str, variant: str | None) -> None:
    """Download the files of a lock into the artifact store; what is there already is not fetched again.

    Wheels are read once and held against what their own RECORD promises.

    \b
    lj-image fetch 25.02
    """
    from lj_image.builders.oci.inspected import inspect_new
    from lj_image.builders.oci.wheel.wheel import Wheel
    from lj_image.lock.fetch import fetch
    from lj_image.lock.progress import progress_for

    lock = app.lock(app.release(release, variant))
    fetched = fetch((*lock.distributions, *lock.archives), app.config, app.store, progress_for())
    wheels = (item for item in lock.artifacts() if item.kind == "wheel")
    looked_into = inspect_new(
        (Wheel(app.store.path(item.sha256), item.file, item.sha256) for item in wheels), app.config.cache_dir
    )
    app.print(
        f"{lock.key}: {len(fetched)} files fetched, {len(lock.artifacts()) - len(fetched)} were there; "
        f"{looked_into} wheels read and found as they promise"
    )
