"""`lj-image list`."""

from __future__ import annotations

import click

from lj_image.cli.app import App


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(app: App, as_json: bool) -> None:
    """List images, releases and variants.

    \b
    lj-image list
    """
    from lj_image.catalog.listing import listing

    rows = listing(app.catalog)
    if as_json:
        app.print_json([row.to_json() for row in rows])
        return
    app.print_table(
        ("IMAGE", "RELEASE", "BASE", "VARIANTS"),
        [(row.image, row.release, row.base, ", ".join(row.shown_variants())) for row in rows],
    )
