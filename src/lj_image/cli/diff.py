"""`lj-image diff`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal

import click

from lj_image.cli.app import App, is_terminal

if TYPE_CHECKING:
    import docker

    from lj_image.release.diff.compare import Diff

MOST_FILES = 60
"""Rows of files in a terminal; `--json` has all."""


@click.command("diff")
@click.argument("before", metavar="A")
@click.argument("after", metavar="[B]", required=False)
@click.option("--variant", help="The variant of both; by default the first one that is configured and both have.")
@click.option("--platform", metavar="OS/ARCH", help="Such as linux/arm64.")
@click.option("--files", is_flag=True, help="Compare files, too.")
@click.option("--dockerfile", is_flag=True, help="Show the difference of the rendered Dockerfiles, too.")
@click.option(
    "--format", "form", type=click.Choice(["text", "markdown"]), default="text", help="What to print; text by default."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with nothing cut.")
@click.option("--exit-code", "tells", is_flag=True, help="End with exit code 1 when the two differ.")
@click.pass_obj
def command(
    app: App,
    before: str,
    after: str | None,
    variant: str | None,
    platform: str | None,
    files: bool,
    dockerfile: bool,
    form: Literal["text", "markdown"],
    as_json: bool,
    tells: bool,
) -> int:
    """Compare two releases, images or archives: versions, licences, layers, and what a node must pull.

    Each of A and B is a release (25.02), a release at a git revision (25.02@main), an image of the engine (name:tag or
    sha256:…), or the path of an archive (of docker save, or an OCI layout as a folder or tar). A release alone is
    compared with the one that it inherits from.

    \b
    lj-image diff 25.02 25.03
    lj-image diff 25.03
    lj-image diff 25.03@main 25.03 --dockerfile --format markdown
    lj-image diff 25.03 training-nv-pytorch:25.03-open --exit-code
    """
    from lj_image.release.diff.sides import Ground, Wanted, diff_named, release_before

    ground = Ground(app.config, app.release, lambda: app.catalog.root, _connect, app.say)
    wanted = Wanted(variant, platform, files, dockerfile)
    if after is None:
        before, after = release_before(before, ground, wanted), before
    found = diff_named(before, after, ground, wanted)
    if as_json:
        from lj_image.release.diff.report import to_json

        app.print_json(to_json(found))
    elif form == "markdown":
        from lj_image.release.diff.markdown import markdown

        click.echo(markdown(found), nl=False)
    else:
        _show(app, found)
    return 1 if tells and found.differs else 0


def _connect() -> docker.APIClient:
    from lj_image.builders.docker import engine  # late: two releases need none

    return engine.connect()


def _show(app: App, found: Diff) -> None:
    from lj_image.cli.app import table_lines
    from lj_image.release.diff.report import base_line, heading, pull_notes, tables

    app.print(heading(found))
    if (base := base_line(found)) is not None:
        app.print(base)
    if not found.differs:
        app.print("no difference")
    for table in tables(found, most_files=MOST_FILES):
        app.print()
        app.print(table.title)
        for line in table_lines(table.header, table.rows):
            app.print(_emphasised(line))
        if table.left_out:
            app.print(f"… and {table.left_out:,} more; --json has all")
    if found.dockerfile:
        app.print()
        for line in found.dockerfile:
            app.print(line)
    for number, note in enumerate((*pull_notes(found), *found.notes)):
        app.print(f"note: {note}" if number else f"\nnote: {note}")


def _emphasised(line: str) -> str:
    """Set a version that went down in red where a person watches."""
    from lj_image.release.diff.report import DOWN

    if f" {DOWN}" not in line or not is_terminal(sys.stdout):
        return line
    return line.replace(f" {DOWN}", " " + click.style(DOWN, fg="red", bold=True), 1)
