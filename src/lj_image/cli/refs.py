"""`lj-image refs`."""

from __future__ import annotations

import click

from lj_image.cli.app import App


@click.command("refs")
@click.argument("release")
@click.option("--variant", help="The variant; by default the first one that is configured.")
@click.pass_obj
def command(app: App, release: str, variant: str | None) -> None:
    """Print the references of a release, and nothing else: the public one, then one for each region.

    \b
    lj-image refs 25.02 --variant serverless
    """
    from lj_image.release.references import all_references

    resolved = app.release(release, variant, only_configured=False)
    for reference in all_references(resolved, resolved.tag):
        app.print(reference)
