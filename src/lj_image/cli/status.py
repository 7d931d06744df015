"""`lj-image status`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import click

from lj_image.cli.app import App

if TYPE_CHECKING:
    from lj_image.catalog.release import Release
    from lj_image.release.status import Asked, PlaceStatus, ReleaseStatus, TagStatus

_CELLS: Final = {"equal": "yes", "missing": "-", "drifted": "other", "unrecorded": "there", "refused": "refused"}
_SHORT: Final = len("sha256:") + 12


@click.command("status")
@click.argument("release", required=False)
@click.option("--variant", help="One variant only.")
@click.option("--region", "regions", multiple=True, help="Region to ask; repeat it, or 'all'.")
@click.option("--public", is_flag=True, help="Ask the public place.")
@click.option("--deep", is_flag=True, help="Ask for every manifest and layer, too.")
@click.option("--exit-code", is_flag=True, help="End with 1 or 3 where something is not as recorded.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(
    app: App,
    release: str | None,
    variant: str | None,
    regions: tuple[str, ...],
    public: bool,
    deep: bool,
    exit_code: bool,
    as_json: bool,
) -> int:
    """Ask registries which image each tag of a release has, and whether it is the recorded one.

    Without RELEASE, all releases at all places. Without --region and --public, every place of the family is asked, all
    at once. With --exit-code: 1 when a tag is missing or holds something else, 3 when all that answered is right, but
    not every place did.

    \b
    lj-image status
    lj-image status 25.02 --public --region cn-beijing
    lj-image status 25.02 --public --deep --exit-code
    """
    from lj_image.release.registries import brief_opener
    from lj_image.release.status import exit_code as code_of
    from lj_image.release.status import status

    asked = [_asked(app, item, regions, public) for item in _releases(app, release, variant)]
    found = status(asked, deep=deep, open_registry=brief_opener(app.config))
    if as_json:
        app.print_json({"releases": [item.to_json() for item in found]})
    elif release is not None:
        for item in found:
            _show_release(app, item)
    else:
        _show_matrices(app, found)
    return code_of(found) if exit_code else 0


def _releases(app: App, release: str | None, variant: str | None) -> Iterator[Release]:
    """Yield each release in each variant in which it can be had, whatever this machine's config lacks for it."""
    from lj_image.errors import UsageError

    catalog = app.catalog
    families = {name: catalog.family(name) for name in catalog.family_names}
    if release is not None:
        family, name = catalog.find(release)
        wanted = [(family, name)]
    else:
        wanted = [(family, name) for family in families.values() for name in family.release_names]
        known = dict.fromkeys(item for family in families.values() for item in family.file.variants)
        if variant is not None and variant not in known:
            from lj_image.suggest import did_you_mean

            raise UsageError(f"no variant {variant!r}", hint=did_you_mean(variant, known, noun="variants"))
    for family, name in wanted:
        named = f"{family.name}/{name}"
        if release is not None and variant is not None:
            yield app.release(named, variant, only_configured=False, base_known=False)
            continue
        first = app.release(named, only_configured=False, base_known=False)
        for item in first.offered:
            if variant in (None, item):
                yield app.release(named, item, only_configured=False, base_known=False)


def _asked(app: App, release: Release, regions: tuple[str, ...], public: bool) -> Asked:
    from lj_image.release.record import Records
    from lj_image.release.references import ALL_REGIONS, targets
    from lj_image.release.status import Asked, known_of

    if not (regions or public):
        regions, public = (ALL_REGIONS,), True
    known = known_of(Records(app.config.cache_dir, release.image), release.key)
    return Asked(release, targets(release, release.tag, regions, public, app.config), known)


def _show_release(app: App, found: ReleaseStatus) -> None:
    release, known = found.asked.release, found.asked.known
    recorded = known.digests[0] if known.digests else "nothing recorded on this machine"
    app.print(f"{release.image} {release.name} {release.variant}: {recorded}")
    rows = [
        (place.target.endpoint.name, tag.tag, _word(place, tag), tag.digest or "-")
        for place in found.places
        if place.own.state != "unreachable"
        for tag in place.tags
    ]
    if rows:
        app.print_table(("PLACE", "TAG", "STATE", "DIGEST"), rows)
    _show_silent(app, found.places)
    app.print()


def _word(place: PlaceStatus, tag: TagStatus) -> str:
    holds = f": {tag.holds}" if tag.holds else ""
    if tag.moves or place.lacks is None:
        return f"{tag.state}{holds}"
    return f"{tag.state}{holds}, {f'lacks {len(place.lacks)}' if place.lacks else 'complete'}"


def _show_matrices(app: App, found: Sequence[ReleaseStatus]) -> None:
    """Show a table for each image: places down, releases across."""
    for image in dict.fromkeys(item.asked.release.image for item in found):
        own = [item for item in found if item.asked.release.image == image]
        names = dict.fromkeys(place.target.endpoint.name for item in own for place in item.places)
        rows = [row for name in names if (row := _row(name, own)) is not None]
        app.print(image)
        if rows:
            app.print_table(("PLACE", *(item.asked.release.key for item in own)), rows)
        places = [place for item in own for place in item.places]
        for line in dict.fromkeys(_strayed(places)):
            app.print(line)
        _show_silent(app, places)
        app.print()


def _row(name: str, found: Iterable[ReleaseStatus]) -> tuple[str, ...] | None:
    """Return the row of a place; None for one that no request reached."""
    places = [next((one for one in item.places if one.target.endpoint.name == name), None) for item in found]
    if all(place is None or place.own.state == "unreachable" for place in places):
        return None
    return (name, *(_cell(place) for place in places))


def _cell(place: PlaceStatus | None) -> str:
    if place is None:
        return ""
    return "incomplete" if place.lacks else _CELLS.get(place.own.state, place.own.state)


def _strayed(places: Iterable[PlaceStatus]) -> Iterator[str]:
    """Yield a line for each tag that holds something else than the record says."""
    for place in places:
        for tag in place.tags:
            if tag.state == "drifted" or (tag.moves and tag.is_wrong):
                holds = tag.holds or (tag.digest[:_SHORT] if tag.digest else "nothing")
                yield f"{place.target.endpoint.name}: {tag.tag} holds {holds}"


def _show_silent(app: App, places: Iterable[PlaceStatus]) -> None:
    """Name the places that are not reached in one line, as most are from outside a VPC; explain the others."""
    places = tuple(places)
    unreached = dict.fromkeys(item.target.endpoint.name for item in places if item.own.state == "unreachable")
    if unreached:
        app.print(f"not reached from here: {', '.join(unreached)}")
    told = {(item.target.endpoint.name, item.message): item.hint for item in places if item.message}
    for (name, message), hint in told.items():
        if name not in unreached or name == "public":
            app.print(f"{name}: {message}{f' ({hint})' if hint else ''}")
