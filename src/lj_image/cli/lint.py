"""`lj-image lint`."""

from __future__ import annotations

import click

from lj_image.cli.app import App


@click.command("lint")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(app: App, as_json: bool) -> int:
    """Check every file of the catalog, without a network; exit code 2 when something is wrong.

    \b
    lj-image lint
    """
    from lj_image.catalog.lint import lint

    findings = lint(app.catalog)
    if as_json:
        app.print_json(
            [{"message": item.message, "hint": item.hint, "at": str(item.location or "")} for item in findings]
        )
    else:
        for line in (line for finding in findings for line in finding.lines()):
            app.print(line)
        app.say(f"{len(findings)} findings" if findings else "no findings")
    return 2 if findings else 0
