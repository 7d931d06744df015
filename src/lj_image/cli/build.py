"""`lj-image build`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Literal

import click

from lj_image.cli.app import App

if TYPE_CHECKING:
    from lj_image.catalog.release import Release
    from lj_image.lock.lock import Lock


@click.command("build")
@click.argument("release")
@click.option("--variant", help="The variant; by default the first one that is configured.")
@click.option("--only", metavar="NAME,…", help="Build a partial image of these components; push refuses it.")
@click.option("--set", "sets", multiple=True, metavar="NAME=VERSION", help="Try a version without editing; repeat it.")
@click.option("--no-cache", is_flag=True, help="Run every step again.")
@click.option("--platform", metavar="OS/ARCH", help="Such as linux/arm64.")
@click.option("--builder", type=click.Choice(["auto", "docker", "docker-classic"]), default="auto", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print events as JSON lines to stderr, the result to stdout.")
@click.pass_obj
def command(
    app: App,
    release: str,
    variant: str | None,
    only: str | None,
    sets: tuple[str, ...],
    no_cache: bool,
    platform: str | None,
    builder: Literal["auto", "docker", "docker-classic"],
    as_json: bool,
) -> None:
    """Build the image of a release; says `up to date` when nothing that goes into it has changed.

    \b
    lj-image build 25.02
    lj-image build 25.02 --only transformers,ray
    lj-image build 25.02 --set vllm=0.7.3
    """
    from lj_image.builders.docker import engine
    from lj_image.builders.docker.view import view
    from lj_image.cli.selection import components_named, versions_set
    from lj_image.cli.workshop import workshop
    from lj_image.plan import plan
    from lj_image.release.build import Options, build

    resolved = app.release(release, variant, platform=platform, overridden=versions_set(sets))
    planned = plan(resolved, _lock(app, resolved), only=components_named(only, resolved))
    tools = workshop(app, resolved, engine.connect())
    built, up_to_date = build(planned, Options(builder, no_cache), tools, lambda: view(as_json=as_json))
    if as_json:
        app.print_json(asdict(built) | {"up_to_date": up_to_date})
        return
    state = "up to date" if up_to_date else f"built in {built.seconds:,.1f} s"
    app.print(f"{built.tag}  {built.image_id}  {built.size_bytes / 1024**2:,.1f} MiB  {state}")


def _lock(app: App, release: Release) -> Lock:
    """Return the committed lock, or one for the versions that are tried."""
    if not release.overridden:
        return app.lock(release)
    from lj_image.lock.trial import lock_for  # late: it brings the resolver and an HTTP client

    return lock_for(release, app.config)
