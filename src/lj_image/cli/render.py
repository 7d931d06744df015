"""`lj-image render`."""

from __future__ import annotations

from pathlib import Path

import click

from lj_image.cli.app import App


@click.command("render")
@click.argument("release")
@click.option("--variant", help="The variant; by default the first one that is configured.")
@click.option("--only", metavar="NAME,…", help="Render a partial image of these components.")
@click.option("--classic", is_flag=True, help="The form for engines without BuildKit: a stage for each install.")
@click.option(
    "-o", "--output", "directory", type=click.Path(path_type=Path), help="Write Dockerfile and context to this folder."
)
@click.pass_obj
def command(
    app: App, release: str, variant: str | None, only: str | None, classic: bool, directory: Path | None
) -> None:
    """Print the Dockerfile of a release; with -o, write it with its whole build context.

    \b
    lj-image render 25.02 --variant open
    lj-image render 25.02 -o build/context && docker build build/context
    """
    from lj_image.cli.selection import components_named
    from lj_image.dockerfile import Form, render
    from lj_image.templating import project_templates

    resolved = app.release(release, variant)
    planned = app.plan(resolved, components_named(only, resolved))
    templates = project_templates(app.catalog.root, app.config.cache_dir)
    form: Form = "staged" if classic else "mounts"
    if directory is None:
        click.echo(render(planned, templates, form=form, base=app.config.mirrored(resolved.base.name)), nl=False)
        return
    from lj_image.builders.docker import engine
    from lj_image.cli.workshop import workshop
    from lj_image.release.build import prepare

    prepared = prepare(planned, form, workshop(app, resolved, engine.connect()))
    prepared.context.write_to(directory)
    app.print(f"{directory}: Dockerfile and {len(prepared.context.files)} files")
