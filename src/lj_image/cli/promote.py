"""`lj-image promote`."""

from __future__ import annotations

import click

from lj_image.cli.app import App


@click.command("promote")
@click.argument("release")
@click.option(
    "--from", "source", required=True, metavar="PLACE", help="Where it is: region, public, place, HOST[/PATH]."
)
@click.option("--variant", help="The variant; by default the first one that is configured.")
@click.option("--region", "regions", multiple=True, help="Region whose VPC name to publish; repeat it, or 'all'.")
@click.option("--public", is_flag=True, help="Publish the public name, too.")
@click.option("--digest", metavar="SHA256", help="The digest that it must be, where no record says.")
@click.option("--all-or-nothing", is_flag=True, help="Move no tag unless every place has all of it.")
@click.option("--force-tag", is_flag=True, help="Move a tag that holds another image.")
@click.option("--no-verify", is_flag=True, help="Publish what the record has no proof of.")
@click.option("--dry-run", is_flag=True, help="Ask every registry, send nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(
    app: App,
    release: str,
    source: str,
    variant: str | None,
    regions: tuple[str, ...],
    public: bool,
    digest: str | None,
    all_or_nothing: bool,
    force_tag: bool,
    no_verify: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Publish a release from a registry that holds it already: byte for byte, and nothing of it has to be here.

    PLACE is a region, 'public', a name under `endpoints.places` of the config, such as 'staging', or HOST[/PATH]. What
    is published is the digest that the record says, else --digest, else what the tag holds at PLACE. Blobs are mounted
    where both are one registry.

    \b
    lj-image promote 25.02 --from staging --public --region all
    lj-image promote 25.02 --from cn-beijing --region cn-shanghai
    lj-image promote 25.02 --from registry.example:5000/team --region all --all-or-nothing
    """
    from lj_image.cli.carried import digest_of, means, show
    from lj_image.release.outcome import Wishes
    from lj_image.release.promote import promote
    from lj_image.release.record import Records
    from lj_image.release.references import targets

    resolved = app.release(release, variant, only_configured=False)
    outcome = promote(
        resolved,
        source,
        targets(resolved, resolved.tag, regions, public, app.config),
        records=Records(app.config.cache_dir, resolved.image),
        digest=digest_of(digest),
        verify=not no_verify,
        wishes=Wishes(all_or_nothing, force_tag, dry_run),
        means=means(app),
        say=app.say,
    )
    return show(app, outcome, as_json=as_json)
