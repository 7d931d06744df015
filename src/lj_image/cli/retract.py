"""`lj-image retract`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from lj_image.cli.app import App, is_terminal
from lj_image.errors import UsageError

if TYPE_CHECKING:
    from lj_image.release.retract import Retraction


@click.command("retract")
@click.argument("release")
@click.option("--variant", help="The variant; by default the first one that is configured.")
@click.option("--region", "regions", multiple=True, help="Region to take it from; repeat it, or 'all'.")
@click.option("--public", is_flag=True, help="Take it from the public place, too.")
@click.option("--tag", metavar="TAG", help="Another tag of the release, such as one that moves.")
@click.option("--force", is_flag=True, help="Also what the record does not know, and tags that go with it.")
@click.option("--yes", is_flag=True, help="Do not ask; needed without a terminal.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(
    app: App,
    release: str,
    variant: str | None,
    regions: tuple[str, ...],
    public: bool,
    tag: str | None,
    force: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Take a release's tag away from registries, after showing what it holds there and asking.

    Nobody can pull the release by that tag any more; who has it keeps it. A tag that holds another image than the
    recorded one stays. So does one whose registry could only delete it together with other tags.

    \b
    lj-image retract 25.02 --public --region all
    lj-image retract 25.02 --region cn-beijing --tag latest --yes
    """
    from lj_image.oci.reference import Reference
    from lj_image.release.record import Records
    from lj_image.release.references import targets
    from lj_image.release.registries import brief_opener
    from lj_image.release.retract import error_of, look, retract
    from lj_image.release.status import known_of

    resolved = app.release(release, variant, only_configured=False, base_known=False)
    wanted = resolved.tag if tag is None else tag
    places = targets(resolved, wanted, regions, public, app.config)
    if any(Reference.parse(place.sent_to).tag != wanted or "@" in wanted for place in places):
        raise UsageError(f"no tag: {wanted!r}", hint="write a tag alone, such as latest")
    records = Records(app.config.cache_dir, resolved.image)
    opened = brief_opener(app.config)
    found = look(places, known_of(records, resolved.key), resolved.tag, force=force, open_registry=opened)
    going = [item for item in found if item.state == "found"]
    if going:
        if not as_json:
            _show(app, found)
        _require_yes(len(going), wanted, yes=yes)
        found = retract(found, records, resolved.key, force=force, open_registry=opened)
    if as_json:
        app.print_json({"release": resolved.key, "tag": wanted, "places": [item.to_json() for item in found]})
    else:
        _show(app, found)
    if (error := error_of(found, wanted)) is not None:
        raise error
    return 0


def _show(app: App, found: tuple[Retraction, ...]) -> None:
    rows = [(item.target.endpoint.name, item.target.reference, item.state, item.digest or "-") for item in found]
    app.print_table(("PLACE", "REFERENCE", "STATE", "DIGEST"), rows)


def _require_yes(count: int, tag: str, *, yes: bool) -> None:
    """Ask the person; raises UsageError where nobody can answer, click.Abort for a no."""
    if yes:
        return
    if not is_terminal(sys.stdin):
        raise UsageError(
            f"{tag} would be retracted from {count} places, and there is no terminal to ask on",
            hint="look at the table, then add --yes",
        )
    click.confirm(f"retract {tag} from {count} {'place' if count == 1 else 'places'}?", abort=True, err=True)
