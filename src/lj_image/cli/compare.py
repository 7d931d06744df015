"""`lj-image compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lj_image.cli.app import App

if TYPE_CHECKING:
    import docker

    from lj_image.release.compare.compare import Comparison
    from lj_image.release.record import Built


@click.command("compare")
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@click.option("--variant", help="The variant of a release; by default the first one that is configured.")
@click.option("--platform", metavar="OS/ARCH", help="Which image of an archive that holds several.")
@click.option("--strict", is_flag=True, help="Count expected differences, too, and all that is noted.")
@click.option("--ignore", multiple=True, metavar="GLOB", help="Expect any difference at these paths; repeat it.")
@click.option("--fresh", is_flag=True, help="Read every layer, also those that are remembered or that both have.")
@click.option("--all", "everything", is_flag=True, help="Show every path, and where the expected differences are.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with nothing cut.")
@click.pass_obj
def command(
    app: App,
    before: str,
    after: str,
    variant: str | None,
    platform: str | None,
    strict: bool,
    ignore: tuple[str, ...],
    fresh: bool,
    everything: bool,
    as_json: bool,
) -> int:
    """Prove that two images hold the same tree: type, mode, owner, content, link and attributes of every path.

    Each of A and B is an image of the engine (name:tag or sha256:…), the path of an archive (of docker save, or an OCI
    layout as a folder or tar), or a release (25.02): the image built last of it. Times are not compared. What two
    builders of one plan do differently, bytecode and the names of installers, is expected: it is shown and does not
    count. Exit code 0: the same; 1: different; 2: wrong usage.

    \b
    lj-image compare 25.02 ./25.02.oci.tar
    lj-image compare app:docker app:oci --strict --json
    lj-image compare ./before ./after --ignore var/log --ignore '*.pem'
    """
    from lj_image.release.compare.report import result_line, to_json
    from lj_image.release.compare.sides import Ground, Wanted, compare_named

    ground = Ground(lambda: app.config.cache_dir, lambda name: _built(app, name, variant, platform), _connect, app.say)
    found = compare_named(before, after, ground, Wanted(platform, ignore, fresh))
    if as_json:
        app.print_json(to_json(found, strict=strict))
    else:
        _show(app, found, strict=strict, everything=everything)
        app.print(result_line(found, strict=strict))
    return 1 if found.differ(strict=strict) else 0


def _connect() -> docker.APIClient:
    from lj_image.builders.docker import engine  # late: two archives need none

    return engine.connect()


def _built(app: App, name: str, variant: str | None, platform: str | None) -> Built:
    """Return what was built last of a release; raises VerificationError where nothing was."""
    from lj_image.release.proof import built_image
    from lj_image.release.record import Records

    resolved = app.release(name, variant, platform=platform, only_configured=False)
    record = Records(app.config.cache_dir, resolved.image).read(resolved.key)
    built_image(record, resolved.key, resolved.image_in_commands)
    assert record is not None  # or it would have refused
    assert record.built is not None
    return record.built


def _show(app: App, found: Comparison, *, strict: bool, everything: bool) -> None:
    from lj_image.release.compare.report import tables

    for table in tables(found, strict=strict, everything=everything):
        app.print(table.title)
        app.print_table(table.header, table.rows)
        if table.left_out:
            app.print(f"… and {table.left_out:,} more; --all shows them")
        app.print()
