"""`lj-image schema`."""

from __future__ import annotations

import click

from lj_image.cli.app import App


@click.command("schema")
@click.argument("kind", type=click.Choice(["image", "release", "config"]), required=False)
@click.pass_obj
def command(app: App, kind: str | None) -> None:
    """Print the JSON Schema of image.yaml, of a release or of the config, for editors; without a kind, what there is.

    An editor with the YAML language server takes it from a file's first line:
    `# yaml-language-server: $schema=PATH`.

    \b
    lj-image schema release > release.json
    """
    from lj_image.manifest.json_schema import KINDS, json_schema

    if kind is not None:
        app.print_json(json_schema(kind))
        return
    app.print_table(("KIND", "FILES", "WHAT"), [(name, item.files, item.title) for name, item in KINDS.items()])
