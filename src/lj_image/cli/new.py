"""`lj-image new`."""

from __future__ import annotations

import click

from lj_image.cli.app import App


@click.command("new")
@click.argument("release")
@click.option("--from", "previous", required=True, metavar="PREVIOUS", help="The release before, which it inherits.")
@click.option("--image", help="The image, where several have releases; or write IMAGE/RELEASE.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(app: App, release: str, previous: str, image: str | None, as_json: bool) -> None:
    """Write the file of a new release, with all that it inherits in comments, ready to be edited.

    \b
    lj-image new 25.11 --from 25.10
    lj-image new training-nv-pytorch/25.11 --from 25.10
    """
    from lj_image.catalog.catalog import shown
    from lj_image.manifest.new_release import new_release
    from lj_image.manifest.writing import create_text

    new = new_release(app.catalog, release, previous, image)
    create_text(new.path, new.text)
    if as_json:
        app.print_json({"file": str(new.path), "release": new.name})
        return
    app.print(shown(new.path))
    app.say(f"next: edit it, or lj-image set {new.name} NAME=VERSION; then lj-image lint, lj-image lock {new.name}")
