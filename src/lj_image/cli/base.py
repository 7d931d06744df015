"""`lj-image base`."""

from __future__ import annotations

import click

from lj_image.cli.app import App


@click.command("base")
@click.argument("release")
@click.option("--variant", help="The variant; by default the first one that is configured.")
@click.option("--platform", metavar="OS/ARCH", help="Such as linux/arm64.")
@click.option("--print", "only_print", is_flag=True, help="Print what was found, change no file.")
@click.pass_obj
def command(app: App, release: str, variant: str | None, platform: str | None, only_print: bool) -> None:
    """Ask a base image for its Python, platform and packages, and keep the answer for the resolver.

    Needs an engine, and for another platform one that can run it. The answer is a file below images/<image>/bases, one
    for each platform, to be committed.

    \b
    lj-image base 25.02 --variant serverless
    lj-image base 25.10 --variant serverless --platform linux/arm64
    """
    from pathlib import Path

    from lj_image.builders.docker import engine
    from lj_image.builders.docker.base import ensure_base
    from lj_image.builders.docker.base_facts import ask_base, facts_yaml
    from lj_image.whole import write_whole

    # By its tag: what was known of it, its digest included, is what is asked for anew.
    resolved = app.release(release, variant, platform=platform, only_configured=False, base_known=False)
    api = engine.connect()
    image = ensure_base(api, resolved.base, app.config, resolved.platform, log=app.say)
    facts = ask_base(api, image.reference, resolved.platform)
    reference = resolved.base.reference
    text = facts_yaml(
        reference or str(resolved.base.recipe and resolved.base.recipe.name),
        image.digest if reference else None,
        facts,
        f"lj-image base {release} --variant {resolved.variant}" + (f" --platform {platform}" if platform else ""),
    )
    if only_print:
        click.echo(text, nl=False)
        return
    path = Path(resolved.base.facts.file)
    write_whole(path, text, alone=True)
    app.print(f"{path}: Python {facts.python}, glibc {facts.glibc}, {len(facts.packages)} packages")
