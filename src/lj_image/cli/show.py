"""`lj-image show`."""

from __future__ import annotations

import click

from lj_image.cli.app import App


@click.command("show")
@click.argument("release")
@click.option("--variant", help="The variant; by default the first one that is configured.")
@click.option("--platform", metavar="OS/ARCH", help="Such as linux/arm64.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(app: App, release: str, variant: str | None, platform: str | None, as_json: bool) -> None:
    """Show a release: its components and where they come from.

    \b
    lj-image show 25.02
    lj-image show 25.02 --variant serverless
    """
    from lj_image.catalog.description import component_rows, to_json, unavailable_variants

    found = app.release(release, variant, platform=platform, only_configured=False)
    unavailable = unavailable_variants(app.catalog, release)
    if as_json:
        app.print_json({**to_json(found), "unavailable": unavailable})
        return
    app.print(f"{found.image} {found.name}, variant {found.variant} ({found.variant_reason})")
    app.print(f"base   {found.base.name}: Python {found.base.facts.python}, glibc {found.base.facts.glibc}")
    app.print(f"tag    {found.tag}")
    if found.driver:
        app.print(f"driver {found.driver.requires}")
    app.print()
    app.print_table(("COMPONENT", "PROMISED", "INSTALLED", "FROM", "NOTE"), component_rows(found))
    for line in (*(item.text for item in found.highlights), *(f"fixed: {fix}" for fix in found.fixes)):
        app.print(f"- {line}")
    for item in found.left_out:
        app.print(f"left out: {item.title} {item.version}: {item.reason}")
    for name, why in unavailable.items():
        app.print(f"not in {name}: {why}")
