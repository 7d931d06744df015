"""`lj-image export`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lj_image.cli.app import App
from lj_image.errors import Interrupted

if TYPE_CHECKING:
    from lj_image.oci.content import Content
    from lj_image.oci.exporting import Exported
    from lj_image.release.mirror import Passport


@click.command("export")
@click.argument("release")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--from", "source", metavar="PLACE", help="Take it from a registry: region, public, place, HOST[/PATH].")
@click.option("--variant", help="The variant; by default the first one that is configured.")
@click.option("--digest", metavar="SHA256", help="With --from: the digest that it must be, where no record says.")
@click.option("--no-verify", is_flag=True, help="Export without proof; the file says so.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(
    app: App,
    release: str,
    path: Path,
    source: str | None,
    variant: str | None,
    digest: str | None,
    no_verify: bool,
    as_json: bool,
) -> int:
    """Write a release as an OCI layout, for a place without a network: PATH is FILE.tar, or a folder.

    From this machine, or from a registry that has it. The layout says which release it holds and whether
    that was verified; `lj-image import` publishes it, and skopeo and engines read it, too. Every digest is checked.
    Ended early, the same command goes on where it was.

    \b
    lj-image export 25.02 25.02.tar
    lj-image export 25.02 /media/stick/25.02 --from cn-beijing
    """
    from lj_image.builders.docker import engine
    from lj_image.builders.oci.layer_cache import LayerCache
    from lj_image.cli.carried import digest_of, means
    from lj_image.oci.content import content_of
    from lj_image.release.mirror import is_tar, passport_of, require_exportable
    from lj_image.release.record import Records
    from lj_image.release.references import all_references
    from lj_image.release.senders import source_for
    from lj_image.release.source import content_from

    is_tar(path)  # a path that cannot be is told before anything is asked
    resolved = app.release(release, variant, only_configured=False)
    name = all_references(resolved, resolved.tag)[0]
    record = Records(app.config.cache_dir, resolved.image).read(resolved.key)
    if source is None:
        proof = require_exportable(record, resolved.key, verify=not no_verify)
        with LayerCache(app.config.cache_dir).in_use():
            built = record.built if record else None
            content = content_of(source_for(built, resolved, app.config, app.say, engine.connect).image())
            done = _written(app, content, passport_of(resolved, resolved.tag, proof), name, path)
    else:
        with content_from(
            *(source, resolved, resolved.tag, app.config),
            record=record,
            digest=digest_of(digest),
            verify=not no_verify,
            say=app.say,
            open_registry=means(app).open_registry,
        ) as found:
            passport = passport_of(resolved, resolved.tag, found.proof)
            content, done = found.content, _written(app, found.content, passport, name, path)
    _show(app, content, done, as_json=as_json)
    return 0


def _written(app: App, content: Content, passport: Passport, name: str, path: Path) -> Exported:
    from lj_image.lock.progress import progress_for
    from lj_image.release.mirror import export

    progress = progress_for()
    progress.start(content.size_bytes, f"{passport.tag} to {path}")
    try:
        return export(content, passport, name, path, progress.advance)
    except KeyboardInterrupt:
        hint = "run the same command again: what was written is taken over"
        raise Interrupted(f"interrupted: {path} is not whole yet", hint=hint) from None
    finally:
        progress.done()


def _show(app: App, content: Content, done: Exported, *, as_json: bool) -> None:
    from lj_image.cli.amounts import size_text

    digest = content.root.descriptor.digest
    if as_json:
        app.print_json(
            {
                "path": str(done.path),
                "digest": str(digest),
                "blobs": len(content.blobs),
                "size_bytes": content.size_bytes,
                "written_bytes": done.written_bytes,
                "kept_bytes": done.kept_bytes,
            }
        )
        return
    kept = f", {size_text(done.kept_bytes)} of them there before" if done.kept_bytes else ""
    app.print(f"{done.path}  {digest}  {len(content.blobs)} blobs, {size_text(content.size_bytes)}{kept}")
