"""`lj-image plan`."""

from __future__ import annotations

import click

from lj_image.cli.app import App


@click.command("plan")
@click.argument("release")
@click.option("--variant", help="The variant; by default the first one that is configured.")
@click.option("--only", metavar="NAME,…", help="Plan a partial image of these components.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(app: App, release: str, variant: str | None, only: str | None, as_json: bool) -> None:
    """Show the layers of a release, and why each stands where it stands.

    \b
    lj-image plan 25.02 --variant open
    """
    from lj_image.cli.selection import components_named
    from lj_image.plan import describe, total_line

    resolved = app.release(release, variant)
    planned = app.plan(resolved, components_named(only, resolved))
    rows = describe(planned)
    if as_json:
        app.print_json({"release": resolved.key, "base": resolved.base.name, "layers": [row.to_json() for row in rows]})
        return
    app.print(f"{resolved.image} {resolved.key} on {resolved.base.name}")
    app.print_table(
        ("LAYER", "TITLE", "MIB", "FILES", "CONTENTS", "WHY"),
        [(str(row.number), row.title, row.mib, str(row.files), row.contents, row.reason) for row in rows],
    )
    app.print(total_line(planned))
