"""`lj-image init`."""

from __future__ import annotations

from pathlib import Path

import click

from lj_image.cli.app import App


@click.command("init")
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path))
@click.option("--name", help="The image's name; by default the folder's.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(app: App, folder: Path, name: str | None, as_json: bool) -> None:
    """Write a project with a first image into an empty folder; it can be linted, locked and built as it stands.

    \b
    lj-image init
    lj-image init toolbox --name toolbox
    """
    import shlex
    from datetime import UTC, datetime

    from lj_image.manifest.skeleton import name_from, require_name, skeleton, write_project

    release = datetime.now(UTC).strftime("%y.%m")
    image = require_name(name) if name is not None else name_from(folder)
    files = skeleton(image, release)
    write_project(folder, files)
    if as_json:
        app.print_json({"folder": str(folder), "image": image, "release": release, "files": list(files)})
        return
    for path in files:
        app.print(str(folder / path))
    first = "" if folder.resolve() == Path.cwd() else f"cd {shlex.quote(str(folder))}, "
    app.say(f"next: {first}lj-image lint, lj-image lock {release}, lj-image build {release}")
