"""`lj-image build`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from lj_image.cli.app import App
from lj_image.cli.options import builder_option

if TYPE_CHECKING:
    from lj_image.plan import Plan
    from lj_image.release.builder_choice import BuilderName


@click.command("build")
@click.argument("release")
@click.option("--variant", help="The variant; by default the first one that is configured.")
@click.option("--only", metavar="NAME,…", help="Build a partial image of these components; push refuses it.")
@click.option("--set", "sets", multiple=True, metavar="NAME=VERSION", help="Try a version without editing; repeat it.")
@click.option("--no-cache", is_flag=True, help="Run every step again.")
@click.option("--platform", metavar="OS/ARCH,…", help="Such as linux/arm64; the oci builder takes several.")
@builder_option
@click.option(
    "--output",
    "outputs",
    multiple=True,
    metavar="PLACE",
    help="oci: also to oci:FOLDER, oci-archive:FILE, docker-archive:FILE, or engine; repeat it.",
)
@click.option(
    "--base", metavar="PLACE", help="oci: take the base from a layout, a saved image, a rootfs tar or a registry."
)
@click.option("--compression", type=click.Choice(["gzip", "zstd"]), help="oci: of the layers.  [default: gzip]")
@click.option("--lazy", is_flag=True, help="oci: layers with eStargz's table of contents, to be pulled lazily.")
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
    builder: BuilderName,
    outputs: tuple[str, ...],
    base: str | None,
    compression: str | None,
    lazy: bool,
    as_json: bool,
) -> None:
    """Build the image of a release; says `up to date` when nothing that goes into it has changed.

    \b
    lj-image build 25.02
    lj-image build 25.02 --only transformers,ray
    lj-image build 25.02 --set vllm=0.7.3
    lj-image build 25.02 --builder oci --output oci:build/25.02
    """
    from lj_image.release.builder_choice import choose_builder, only_oci

    asked = only_oci(outputs=outputs, base=base, compression=compression, is_lazy=lazy, platform=platform)
    choice = choose_builder(builder, asked)
    plans = [_plan(app, release, variant, only, sets, item) for item in (platform or "").split(",")]
    if choice.name == "oci":
        from lj_image.cli.assembling import assemble_and_show

        app.say(f"builder: oci ({choice.reason})")
        assemble_and_show(
            app, plans, outputs, base=base, compression=compression, lazy=lazy, no_cache=no_cache, as_json=as_json
        )
        return
    _build_in_engine(app, plans[0], choice.name, no_cache=no_cache, as_json=as_json)


def _build_in_engine(app: App, plan: Plan, builder: BuilderName, *, no_cache: bool, as_json: bool) -> None:
    from lj_image.builders.docker import engine
    from lj_image.builders.docker.view import view
    from lj_image.cli.workshop import workshop
    from lj_image.release.build import Options, build

    tools = workshop(app, plan.release, engine.connect())
    built, up_to_date = build(plan, Options(builder, no_cache), tools, lambda: view(as_json=as_json))
    if as_json:
        app.print_json(asdict(built) | {"up_to_date": up_to_date})
        return
    state = "up to date" if up_to_date else f"built in {built.seconds:,.1f} s"
    app.print(f"{built.tag}  {built.image_id}  {built.size_bytes / 1024**2:,.1f} MiB  {state}")


def _plan(app: App, release: str, variant: str | None, only: str | None, sets: tuple[str, ...], platform: str) -> Plan:
    """Return the plan of a release for a platform, with the committed lock, or one for the versions that are tried."""
    from lj_image.cli.selection import components_named, versions_set
    from lj_image.plan import plan

    resolved = app.release(release, variant, platform=platform.strip() or None, overridden=versions_set(sets))
    if resolved.overridden:
        from lj_image.lock.trial import lock_for  # late: it brings the resolver and an HTTP client

        lock = lock_for(resolved, app.config)
    else:
        lock = app.lock(resolved)
    return plan(resolved, lock, only=components_named(only, resolved))
