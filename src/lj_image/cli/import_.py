"""`lj-image import`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lj_image.cli.app import App
from lj_image.errors import UsageError

if TYPE_CHECKING:
    from lj_image.catalog.release import Release
    from lj_image.oci.content import Content
    from lj_image.release.mirror import Parcel
    from lj_image.release.references import Target


@click.command("import")
@click.argument("path", type=click.Path(path_type=Path))
@click.argument("name", required=False)
@click.option("--region", "regions", multiple=True, help="Region whose VPC name to publish; repeat it, or 'all'.")
@click.option("--public", is_flag=True, help="Publish the public name, too.")
@click.option(
    "--to", "places", multiple=True, metavar="PLACE", help="Registry, without any manifest: HOST[/PATH][:TAG]."
)
@click.option("--digest", metavar="SHA256", help="The digest that it must be, if you were told.")
@click.option("--all-or-nothing", is_flag=True, help="Move no tag unless every place has all of it.")
@click.option("--force-tag", is_flag=True, help="Move a tag that holds another image.")
@click.option("--no-verify", is_flag=True, help="Publish what was exported without proof.")
@click.option("--dry-run", is_flag=True, help="Ask every registry, send nothing.")
@click.option("--list", "only_list", is_flag=True, help="Show what is inside, and publish nothing.")
@click.option("--check", "only_check", is_flag=True, help="Read all of it against its digests, and publish nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(
    app: App,
    path: Path,
    name: str | None,
    regions: tuple[str, ...],
    public: bool,
    places: tuple[str, ...],
    digest: str | None,
    all_or_nothing: bool,
    force_tag: bool,
    no_verify: bool,
    dry_run: bool,
    only_list: bool,
    only_check: bool,
    as_json: bool,
) -> int:
    """Publish what is in an OCI layout, a folder or a tar, such as `lj-image export` writes.

    PATH is read once, every blob is held against its digest before a registry has all of it, and no tag moves to what
    is damaged. NAME chooses among several: a release, a tag, or a digest. Regions and the public name are those of the
    project's manifests; --to needs none: PLACE is a name under `endpoints.places` of the config, HOST[/PATH] for the
    release's own repository and tag below it, or HOST/PATH:TAG.

    \b
    lj-image import 25.02.tar --list
    lj-image import 25.02.tar --region cn-beijing
    lj-image import /media/stick/25.02 --to registry.local:5000
    """
    from lj_image.cli.carried import digest_of, means, show
    from lj_image.release.importing import content_of_parcel, import_parcel
    from lj_image.release.mirror import parcel_in, parcels_in
    from lj_image.release.outcome import Wishes
    from lj_image.release.record import Records

    if only_list:
        _list(app, path, parcels_in(path), as_json=as_json)
        return 0
    parcel = parcel_in(path, name)
    if only_check:
        _check(app, content_of_parcel(path, parcel, digest_of(digest)), as_json=as_json)
        return 0
    release = _release(app, parcel, path) if regions or public else None
    outcome = import_parcel(
        path,
        parcel,
        _targets(app, parcel, release, regions, public, places),
        records=Records(app.config.cache_dir, release.image) if release else None,
        key=release.key if release else "",
        digest=digest_of(digest),
        verify=not no_verify,
        wishes=Wishes(all_or_nothing, force_tag, dry_run),
        means=means(app),
    )
    return show(app, outcome, as_json=as_json)


def _release(app: App, parcel: Parcel, path: Path) -> Release:
    from lj_image.release.importing import require_same

    passport = parcel.passport
    if passport is None:
        raise UsageError(
            f"{path} does not say which release it holds, so regions have no name for it",
            hint="write where it is to go: --to HOST/PATH:TAG",
        )
    release = app.release(f"{passport.image}/{passport.release}", passport.variant, only_configured=False)
    require_same(parcel, release, path)
    return release


def _targets(
    app: App, parcel: Parcel, release: Release | None, regions: tuple[str, ...], public: bool, places: tuple[str, ...]
) -> tuple[Target, ...]:
    from lj_image.release.importing import target_at
    from lj_image.release.references import targets

    named = targets(release, release.tag, regions, public, app.config) if release else ()
    found = (*named, *(target_at(place, parcel, app.config) for place in places))
    if not found:
        raise UsageError(
            "nothing says where to publish", hint="write --region REGION, --public or --to HOST[/PATH]; or --list"
        )
    return found


def _check(app: App, content: Content, *, as_json: bool) -> None:
    from lj_image.cli.amounts import size_text
    from lj_image.lock.progress import progress_for
    from lj_image.release.importing import check

    progress = progress_for()
    progress.start(content.size_bytes, f"reading {content.name}")
    try:
        check(content, progress.advance)
    finally:
        progress.done()
    digest = content.root.descriptor.digest
    if as_json:
        app.print_json({"digest": str(digest), "blobs": len(content.blobs), "size_bytes": content.size_bytes})
    else:
        app.print(f"whole: {digest}, {len(content.blobs)} blobs, {size_text(content.size_bytes)}")


def _list(app: App, path: Path, parcels: tuple[Parcel, ...], *, as_json: bool) -> None:
    rows = [_row(path, parcel) for parcel in parcels]
    if as_json:
        app.print_json({"path": str(path), "images": rows})
        return
    header = ("NAME", "RELEASE", "VARIANT", "VERIFIED", "PLATFORMS", "SIZE", "DIGEST")
    app.print_table(header, [_shown(row) for row in rows])


def _row(path: Path, parcel: Parcel) -> dict[str, Any]:
    from lj_image.release.importing import content_of_parcel, platforms_of

    passport, content = parcel.passport, content_of_parcel(path, parcel)
    return {
        "names": parcel.entry.names,
        "image": passport.image if passport else None,
        "release": passport.release if passport else None,
        "variant": passport.variant if passport else None,
        "tag": passport.tag if passport else None,
        "repository": passport.repository if passport else None,
        "verified": passport.proof if passport else "unknown",
        "platforms": platforms_of(content),
        "size_bytes": content.size_bytes,
        "digest": str(parcel.descriptor.digest),
    }


def _shown(row: dict[str, Any]) -> tuple[str, ...]:
    from lj_image.cli.amounts import size_text

    names: Iterator[str] = iter(row["names"])
    release = f"{row['image']}/{row['release']}" if row["image"] else "-"
    platforms = ", ".join(row["platforms"]) or "-"
    size = size_text(row["size_bytes"])
    return next(names, "-"), release, row["variant"] or "-", row["verified"], platforms, size, row["digest"]
