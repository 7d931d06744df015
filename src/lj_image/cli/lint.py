"""`lj-image lint`."""

from __future__ import annotations

import click

from lj_image.cli.app import App


@click.command("lint")
@click.argument("release", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(app: App, release: str | None, as_json: bool) -> int:
    """Check every file of the catalog, or one release, without a network; exit code 2 when something is wrong.

    Each finding says what was found, its code in brackets, where, and what to write instead.

    \b
    lj-image lint
    lj-image lint 25.04 --json
    """
    from lj_image.catalog.lint import lint

    findings = lint(app.catalog, release)
    if as_json:
        app.print_json([finding.to_json() for finding in findings])
    else:
        for line in (line for finding in findings for line in finding.lines()):
            app.print(line)
        app.say(f"{len(findings) or 'no'} finding{'' if len(findings) == 1 else 's'}")
    return 2 if findings else 0
