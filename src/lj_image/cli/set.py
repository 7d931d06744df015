"""`lj-image set`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from lj_image.cli.app import App
from lj_image.errors import UsageError

if TYPE_CHECKING:
    from lj_image.manifest.set_versions import Edit, VersionChange


@click.command("set")
@click.argument("release")
@click.argument("pairs", metavar="NAME=VERSION…", nargs=-1, required=True)
@click.option("--variant", help="Set the version in this variant only.")
@click.option("--dry-run", is_flag=True, help="Print the change as a diff, write nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(app: App, release: str, pairs: tuple[str, ...], variant: str | None, dry_run: bool, as_json: bool) -> None:
    """Set versions in a release's file; comments, order and quotes stay as they are.

    A component that the release only inherits gets a line of its own. All versions are set, or none.

    \b
    lj-image set 25.05 vllm=0.8.5 ray=2.46.0
    lj-image set 25.05 torch=2.6.0 --variant open --dry-run
    """
    from lj_image.manifest.set_versions import set_versions
    from lj_image.manifest.writing import replace_text

    edit = set_versions(app.catalog, release, _versions(pairs), variant)
    if not dry_run and edit.after != edit.before:
        replace_text(edit.path, edit.after)
    for component, variants in edit.kept_by.items():
        app.say(f"{component} stays as it is in {', '.join(variants)}, which has its own: set it with --variant")
    if as_json:
        app.print_json(_to_json(edit, written=not dry_run))
    elif dry_run:
        click.echo(edit.diff(), nl=False)
    else:
        _show(app, edit, release)


def _versions(pairs: tuple[str, ...]) -> dict[str, str]:
    """Return component -> version; raises UsageError for what is no pair, and for a name that comes twice."""
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, version = pair.partition("=")
        if not (name and equals):
            raise UsageError(f"{pair}: not `component=version`", hint="write for example vllm=0.7.3")
        if not version:
            raise UsageError(f"{pair}: no version", hint="to inherit it again, delete its line in the file")
        if version.split() != [version] or not version.isprintable():
            raise UsageError(
                f"{pair!r}: a version holds neither spaces nor control characters", hint="write for example vllm=0.7.3"
            )
        if name in found:
            raise UsageError(f"{name} is given twice", hint="name each component once")
        found[name] = version
    return found


def _show(app: App, edit: Edit, release: str) -> None:
    from lj_image.catalog.catalog import shown

    for change in edit.changes:
        app.print(f"{change.component}: {_told(change)}")
    if edit.after == edit.before:
        app.print(f"{shown(edit.path)}: nothing to change")
        return
    app.print(shown(edit.path))
    app.say(f"next: lj-image lock {release}")


def _told(change: VersionChange) -> str:
    if change.before is None:
        return f"{change.after}, new in this release"
    if change.before == change.after and not change.inherited:
        return f"{change.after}, as before"
    return f"{change.before}{' (inherited)' if change.inherited else ''} → {change.after}"


def _to_json(edit: Edit, *, written: bool) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "file": str(edit.path),
        "written": written and edit.after != edit.before,
        "changes": [asdict(change) for change in edit.changes],
        "own_versions_kept_by": {name: list(variants) for name, variants in edit.kept_by.items()},
    }
