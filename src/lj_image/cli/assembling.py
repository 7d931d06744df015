"""What `build` does without an engine: assemble, write to the places asked for, tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

from lj_image.builders.oci.layer_cache import LayerCache
from lj_image.cli.app import App
from lj_image.lock.progress import progress_for
from lj_image.oci.reference import Reference
from lj_image.plan import Plan
from lj_image.release.assembly import Assembly, AssemblyOptions, Shop, assemble_releases
from lj_image.release.outputs import Output, require_possible, write
from lj_image.release.record import Built, Records

if TYPE_CHECKING:
    from lj_image.builders.oci.assemble import LayerCompression
    from lj_image.oci.source import SourceImage


def assemble_and_show(
    app: App,
    plans: Sequence[Plan],
    outputs: Sequence[str],
    *,
    base: str | None,
    compression: str | None,
    lazy: bool,
    no_cache: bool,
    as_json: bool,
) -> None:
    """Assemble an image for each plan and show what was made; raises what a build raises."""
    places = [Output.parse(text) for text in outputs]
    require_possible(places, len(plans))
    options = AssemblyOptions(base, cast("LayerCompression", compression or "gzip"), lazy, no_cache)
    shop = _shop(app, plans[0])
    found = assemble_releases(plans, options, shop)
    with shop.cache.in_use():
        images = [item.complete(shop.cache) for item in found] if places else []
        for place in places:
            _put(app, place, images, found[0].reference)
    if as_json:
        results = [_json(item, shop) for item in found]
        app.print_json(results[0] if len(results) == 1 else results)
        return
    for item in found:
        app.print(_line(item))
    if not places:
        app.say(f"it lies in the OCI layout {shop.cache.folder} as {found[0].reference}; --output writes it elsewhere")


def assemble_one(app: App, plan: Plan) -> tuple[Built, bool]:
    """Assemble the image of a plan into the cache; return what is recorded of it, and whether it was up to date."""
    (found,) = assemble_releases([plan], AssemblyOptions(), _shop(app, plan))
    return found.built, found.up_to_date


def _shop(app: App, plan: Plan) -> Shop:
    return Shop(
        config=app.config,
        store=app.store,
        records=Records(app.config.cache_dir, plan.release.image),
        cache=LayerCache(app.config.cache_dir),
        say=app.say,
        progress=progress_for(),
    )


def _put(app: App, place: Output, images: Sequence[SourceImage], name: str) -> None:
    if place.transport == "engine":
        from lj_image.builders.docker import engine
        from lj_image.builders.docker.loading import load_image

        load_image(engine.connect(), images[0], name, say=app.say)
    else:
        app.say(f"writing {place}")
        write(place, images, Reference.parse(name))


def _line(item: Assembly) -> str:
    built = item.built
    state = "up to date" if item.up_to_date else f"assembled in {built.seconds:,.1f} s"
    platform = item.base.config.platform
    size = f"{built.size_bytes / 1024**2:,.1f} MiB compressed"
    return f"{built.tag}  {built.image_id}  {platform}  {size}  {state}"


def _json(item: Assembly, shop: Shop) -> dict[str, Any]:
    more = {"platform": str(item.base.config.platform), "layout": str(shop.cache.folder)}
    return asdict(item.built) | {"up_to_date": item.up_to_date} | more
