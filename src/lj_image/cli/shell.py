"""`lj-image shell`."""

from __future__ import annotations

import click

from lj_image.cli.app import App


@click.command("shell")
@click.argument("release")
@click.argument("arguments", metavar="[-- COMMAND…]", nargs=-1, type=click.UNPROCESSED)
@click.option("--variant", help="The variant; by default the first one that is configured.")
@click.option("--mount", "mounts", multiple=True, metavar="HOST:CONTAINER[:ro]", help="Show it a folder; repeat it.")
@click.option("--gpus", default="auto", show_default=True, metavar="auto|all|none|N", help="GPUs to give it.")
@click.pass_obj
def command(
    app: App, release: str, arguments: tuple[str, ...], variant: str | None, mounts: tuple[str, ...], gpus: str
) -> int:
    """Open a shell in a container of a release's image, or run a command; its exit code is that of the command.

    The container runs as the release's notes say (`run:` in image.yaml), and is removed at the end.

    \b
    lj-image shell 25.02
    lj-image shell 25.02 --mount ./models:/models:ro -- python3 -c 'import torch; print(torch.__version__)'
    """
    from lj_image.builders.docker import engine
    from lj_image.builders.docker.shell import Mount, Request, run_shell
    from lj_image.builders.docker.terminal import has_terminal
    from lj_image.release.assembled import identity
    from lj_image.release.proof import built_image
    from lj_image.release.record import Records

    places = tuple(Mount.parse(text) for text in mounts)
    resolved = app.release(release, variant)
    record = Records(app.config.cache_dir, resolved.image).read(resolved.key)
    image_id = built_image(record, resolved.key)
    api = engine.connect()
    _, loaded = identity(record.built if record else None, image_id, resolved, api, app.config, app.say)
    wanted = Request(loaded, arguments, resolved.run, places, gpus)
    return run_shell(api, wanted, terminal=has_terminal(), say=app.say)
