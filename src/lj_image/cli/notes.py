"""`lj-image notes`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lj_image.cli.app import App

if TYPE_CHECKING:
    from lj_image.release.notes import Form


@click.command("notes")
@click.argument("release")
@click.option("--variant", help="The variant; by default the first one that is configured.")
@click.option("--lang", "language", metavar="LANG", help="en, zh: by default the family's first language.")
@click.option(
    "--format", "form", type=click.Choice(["md", "html", "json"]), default="md", show_default=True, help="The form."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON; the same as --format json.")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file.")
@click.pass_obj
def command(
    app: App, release: str, variant: str | None, language: str | None, form: Form, as_json: bool, output: Path | None
) -> None:
    """Write the notes of a release, from its manifests and the record of its image.

    While no image of the release is verified, the note says that it is planned.

    \b
    lj-image notes 25.02
    lj-image notes 25.02 --variant serverless --lang zh --format html -o notes.html
    """
    from lj_image.release.notes import note_facts, render_notes, write_note
    from lj_image.release.record import Records
    from lj_image.templating import project_templates

    resolved = app.release(release, variant, only_configured=False, base_known=False)
    record = Records(app.config.cache_dir, resolved.image).read(resolved.key)
    facts = note_facts(app.catalog, app.config, resolved, record, app.snapshots)
    templates = project_templates(app.catalog.root, app.config.cache_dir)
    text = render_notes(facts, templates, language or facts.languages[0], "json" if as_json else form)
    if output is None:
        click.echo(text, nl=False)
        return
    app.print(str(write_note(output, text)))
