"""`lj-image push`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lj_image.cli.app import App, is_terminal

if TYPE_CHECKING:
    import docker

    from lj_image.builders.docker.push_progress import PushProgress


@click.command("push")
@click.argument("release", required=False)
@click.option("--variant", help="The variant; by default the first one that is configured.")
@click.option("--region", "regions", multiple=True, help="Region whose VPC name to publish; repeat it, or 'all'.")
@click.option("--public", is_flag=True, help="Publish the public name, too.")
@click.option("--dry-run", is_flag=True, help="Ask every registry, send nothing.")
@click.option("--no-verify", is_flag=True, help="Publish without proof; the record says so.")
@click.option("--all-or-nothing", is_flag=True, help="Move no tag unless every place has all of it.")
@click.option("--force-tag", is_flag=True, help="Move a tag that holds another image.")
@click.option("--parallel", type=click.IntRange(1, 16), default=3, show_default=True, help="Blobs at once.")
@click.option("--deadline", type=click.FloatRange(1), metavar="SECONDS", help="Give a place up after so long.")
@click.option("--from", "source", metavar="PLACE", help="Take it from a registry: region, public, place, HOST[/PATH].")
@click.option("--via-engine", is_flag=True, help="Let the engine push, to one place after the other.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(
    app: App,
    release: str | None,
    variant: str | None,
    regions: tuple[str, ...],
    public: bool,
    dry_run: bool,
    no_verify: bool,
    all_or_nothing: bool,
    force_tag: bool,
    parallel: int,
    deadline: float | None,
    source: str | None,
    via_engine: bool,
    as_json: bool,
) -> int:
    """Publish a verified release under its public name and the names inside regions' VPCs, all of them at once.

    Without RELEASE, the one built last. What a place has already is not sent again, and a run that was ended goes on
    where it was. Tags come last: no tag ever stands for less than the whole image. The last line holds every published
    reference with its digest. With --from, the bytes come from a registry that has this very release already, and
    nothing of it has to be here but its record.

    \b
    lj-image push --region cn-beijing
    lj-image push 25.02 --public --region all --dry-run
    lj-image push 25.02 --public --region all --all-or-nothing
    lj-image push 25.02 --region cn-shanghai --from cn-beijing
    """
    from lj_image.cli.carried import means, show
    from lj_image.cli.last import last_built
    from lj_image.plan import plan_digest
    from lj_image.release.outcome import Wishes
    from lj_image.release.publish import publish
    from lj_image.release.record import Records
    from lj_image.release.references import targets
    from lj_image.release.senders import sender_for

    if release is None:
        release, variant = last_built(app)
    resolved = app.release(release, variant)
    places = targets(resolved, resolved.tag, regions, public, app.config)
    records = Records(app.config.cache_dir, resolved.image)
    record = records.read(resolved.key)
    wishes = Wishes(all_or_nothing, force_tag, dry_run)
    if source is not None:
        from lj_image.release.promote import promote, require_promise

        require_promise(record, resolved.key)
        near = promote(
            *(resolved, source, places),
            records=records,
            verify=not no_verify,
            wishes=wishes,
            means=means(app, parallel, deadline),
            say=app.say,
        )
        return show(app, near, as_json=as_json)
    built = record.built if record else None
    outcome = publish(
        resolved,
        resolved.tag,
        records=records,
        key=resolved.key,
        sender=sender_for(
            built, resolved, means(app, parallel, deadline), app.say, connect=_connect, via_engine=via_engine
        ),
        targets=places,
        planned=plan_digest(app.plan(resolved)),
        verify=not no_verify,
        wishes=wishes,
        progress=push_progress() if via_engine else None,
    )
    return show(app, outcome, as_json=as_json)


def _connect() -> docker.APIClient:
    """Connect to the engine; late, as docker-py takes long to load, and a push mostly needs no engine."""
    from lj_image.builders.docker import engine

    return engine.connect()


def push_progress() -> PushProgress:
    """Return what suits stderr: live on a terminal, else one line per event."""
    import sys

    from lj_image.builders.docker.push_progress import PlainProgress, RichProgress

    if not is_terminal(sys.stderr):
        return PlainProgress(sys.stderr)
    from rich.console import Console

    return RichProgress(Console(stderr=True))
