"""`lj-image cache`."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

import click

from lj_image.cli.amounts import age_s, age_text, size_bytes_of, size_text
from lj_image.cli.app import App

if TYPE_CHECKING:
    from lj_image.builders.oci.cache_gc import Removal


@click.group("cache")
def command() -> None:
    """Look into the cache of assembled images and layers, and make room in it.

    \b
    lj-image cache ls
    lj-image cache gc --older-than 30d --keep 20GiB
    """


@command.command("ls")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_images(app: App, as_json: bool) -> None:
    """List the images that were assembled here, and say what all layers take.

    \b
    lj-image cache ls
    """
    from lj_image.builders.oci.cache_stock import stock_of
    from lj_image.builders.oci.layer_cache import LayerCache

    cache, now = LayerCache(app.config.cache_dir), time.time()
    stock = stock_of(cache, is_alone=False)
    shared = {digest.hex for image in stock.images for digest in image.layers}
    spare = [item for item in stock.layers if item.title not in shared]
    if as_json:
        layers = {"layers": len(stock.layers), "in_no_image": len(spare), "size_bytes": stock.size_bytes}
        app.print_json({"folder": str(cache.folder), "images": [i.to_json(now) for i in stock.images], **layers})
        return
    rows = [
        (
            image.name,
            str(image.digest),
            f"{image.size_bytes:,}",
            _age(image.last_used, now) + " damaged" * image.is_damaged,
        )
        for image in stock.images
    ]
    if rows:
        app.print_table(("IMAGE", "DIGEST", "BYTES", "LAST USED"), rows)
    app.print(
        f"{len(rows)} images, {len(stock.layers)} layers, {len(spare)} of them in no image: "
        f"{size_text(stock.size_bytes)} in {cache.folder}"
    )


@command.command("gc")
@click.option("--older-than", metavar="AGE", help="Only what was not used for so long: 12h, 30d, 8w.")
@click.option("--keep", "--keep-size", metavar="SIZE", help="Remove only until the rest fits: 500m, 20GiB.")
@click.option("--dry-run", is_flag=True, help="Say what would go, and remove nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def collect_garbage(app: App, older_than: str | None, keep: str | None, dry_run: bool, as_json: bool) -> None:
    """Remove images and layers that were not used for long, and what killed builds have left.

    An image was used when it was built, found up to date, loaded or pushed; it keeps its layers until it goes itself.
    Without --older-than and --keep, only what neither an image nor a later build can use goes. Builds that run now are
    waited for; what is gone is assembled again when it is asked for.

    \b
    lj-image cache gc --older-than 30d --dry-run
    lj-image cache gc --keep 20GiB
    """
    from lj_image.builders.oci.cache_gc import CacheLimits, collect
    from lj_image.builders.oci.layer_cache import LayerCache

    limits = CacheLimits(age_s("--older-than", older_than), size_bytes_of("--keep", keep))
    gone = collect(LayerCache(app.config.cache_dir), limits, dry_run=dry_run, say=app.say)
    if as_json:
        removed = [*({"kind": "image", "title": i.name} for i in gone.images), *(i.to_json() for i in gone.holdings)]
        app.print_json({"dry_run": dry_run, "freed_bytes": gone.freed_bytes, "removed": removed})
        return
    _show(app, gone, dry_run)


def _show(app: App, gone: Removal, dry_run: bool) -> None:
    for image in gone.images:
        why = "damaged" if image.is_damaged else f"last used: {_age(image.last_used, time.time())}"
        app.print(f"image {image.name} {image.digest} ({why})")
    counts = Counter(item.kind for item in gone.holdings)
    listed = ", ".join(f"{count} {kind}{'s' * (count > 1)}" for kind, count in counts.items()) or "nothing"
    app.print(
        f"{'would free' if dry_run else 'freed'} {gone.freed_bytes:,} bytes ({size_text(gone.freed_bytes)}), {listed}"
    )


def _age(at: float, now: float) -> str:
    text = age_text(now - at)
    return text if text == "now" else f"{text} ago"
