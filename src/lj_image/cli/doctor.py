"""`lj-image doctor`."""

from __future__ import annotations

from typing import Final

import click

from lj_image.cli.app import App

_COLOURS: Final = {"ok": "green", "warning": "yellow", "problem": "red"}


@click.command("doctor")
@click.option("--region", "regions", multiple=True, help="Look at this region's registry, too; repeat it, or 'all'.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(app: App, regions: tuple[str, ...], as_json: bool) -> int:
    """Look at this machine and say what is missing, and how to mend it; changes nothing, shows no secret.

    Exit code 1 when something is wrong that building needs; a registry that is not reached from here is none such.

    \b
    lj-image doctor
    lj-image doctor --region cn-beijing --json
    """
    import os
    from pathlib import Path

    from lj_image.doctor.checkup import checkup

    findings = checkup(os.environ, Path.cwd(), app.images_dir, regions)
    problems = sum(finding.state == "problem" for finding in findings)
    if as_json:
        app.print_json({"ok": problems == 0, "findings": [finding.to_json() for finding in findings]})
        return 1 if problems else 0
    width = max(len(finding.check) for finding in findings)
    for finding in findings:
        state = click.style(finding.state.ljust(7), fg=_COLOURS[finding.state], bold=finding.state == "problem")
        click.echo(f"{state}  {finding.check.ljust(width)}  {finding.found}")
        for line in (finding.hint or "").splitlines():
            click.echo(" " * (width + 11) + line)
    warnings = sum(finding.state == "warning" for finding in findings)
    app.print(f"problems: {problems}, warnings: {warnings}")
    return 1 if problems else 0
