"""`lj-image store`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from lj_image.cli.amounts import age_s, size_bytes_of, size_text
from lj_image.cli.app import App

if TYPE_CHECKING:
    from lj_image.lock.built_wheels import BuiltWheel
    from lj_image.lock.cleaning import Leftover
    from lj_image.lock.contents import Use


@click.group("store")
def command() -> None:
    """Look into the artifact store of this machine, check it, and make room in it.

    \b
    lj-image store ls
    lj-image store gc --older-than 30d --dry-run
    """


@command.command("ls")
@click.option("--unused", is_flag=True, help="Only what no lock of the catalog names.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_files(app: App, unused: bool, as_json: bool) -> None:
    """List the files of the store, largest first, and the locks that name them.

    \b
    lj-image store ls --unused
    """
    from lj_image.lock.contents import contents

    found = [entry for entry in contents(app.store, _uses(app)) if not (unused and entry.locks)]
    if as_json:
        app.print_json([entry.to_json() for entry in found])
        return
    rows = [(entry.sha256[:12], f"{entry.size_bytes:,}", entry.file or "?", _named(entry.locks)) for entry in found]
    app.print_table(("SHA256", "BYTES", "FILE", "LOCKS"), rows)
    app.print(f"{len(found)} files, {size_text(sum(entry.size_bytes for entry in found))} in {app.store.root}")


@command.command("verify")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def verify_files(app: App, as_json: bool) -> int:
    """Hash every file again and drop those that are not what their digest says; exit code 1 when there were any.

    \b
    lj-image store verify
    """
    from lj_image.lock.contents import contents, verify
    from lj_image.lock.progress import progress_for

    verdict = verify(app.store, contents(app.store, _uses(app)), progress_for())
    if as_json:
        dropped = [entry.to_json() for entry in verdict.dropped]
        app.print_json({"files": verdict.files, "size_bytes": verdict.size_bytes, "dropped": dropped})
    else:
        for entry in verdict.dropped:
            app.print(f"dropped {entry.file or entry.sha256}: its bytes were not those of its digest")
        right = verdict.files - len(verdict.dropped)
        app.print(f"{right} of {verdict.files} files are right ({size_text(verdict.size_bytes)} hashed)")
    return 1 if verdict.dropped else 0


@command.command("gc")
@click.option("--older-than", metavar="AGE", help="Only what was not used for so long: 12h, 30d, 8w.")
@click.option("--keep-size", metavar="SIZE", help="Remove artifacts only until the rest fits: 500m, 20g.")
@click.option("--all", "everything", is_flag=True, help="Also what locks of the catalog name; it is fetched again.")
@click.option("--dry-run", is_flag=True, help="Say what would go, and remove nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def collect(
    app: App, older_than: str | None, keep_size: str | None, everything: bool, dry_run: bool, as_json: bool
) -> None:
    """Remove what no lock of the catalog here names, and what interrupted runs have left.

    Other projects that share the cache fetch theirs again. Nothing younger than an hour goes without --all.

    \b
    lj-image store gc --older-than 30d
    lj-image store gc --keep-size 20g --dry-run
    """
    from lj_image.lock.cleaning import Limits, base_digests, chosen, leftovers, remove
    from lj_image.lock.contents import contents

    limits = Limits(age_s("--older-than", older_than), size_bytes_of("--keep-size", keep_size), everything)
    uses, built = ({} if everything else _uses(app)), _built(app)
    bases = frozenset[str]() if everything else base_digests(app.catalog)
    entries = contents(app.store, uses)
    found = leftovers(app.store, entries, uses, built, bases, everything=everything)
    going = chosen(found, limits, sum(entry.size_bytes for entry in entries))
    gone = going if dry_run else remove(going, app.store)
    _show(app, gone, len(going) - len(gone), dry_run, as_json)


def _show(app: App, gone: tuple[Leftover, ...], busy: int, dry_run: bool, as_json: bool) -> None:
    freed = sum(item.size_bytes for item in gone)
    if as_json:
        removed = [item.to_json() for item in gone]
        app.print_json({"dry_run": dry_run, "freed_bytes": freed, "busy": busy, "removed": removed})
        return
    if gone:
        app.print_table(("KIND", "BYTES", "WHAT"), [(item.kind, f"{item.size_bytes:,}", item.title) for item in gone])
    if busy:
        app.say(f"{busy} are being written at this moment and stay")
    app.print(f"{'would free' if dry_run else 'freed'} {freed:,} bytes ({size_text(freed)}), {_counted(gone)}")


def _counted(items: Iterable[Leftover]) -> str:
    counts = Counter(item.kind for item in items)
    return ", ".join(f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in counts.items()) or "nothing"


def _named(locks: tuple[str, ...]) -> str:
    more = f" and {len(locks) - 2} more" if len(locks) > 2 else ""
    return ", ".join(locks[:2]) + more or "-"


def _uses(app: App) -> dict[str, Use]:
    from lj_image.lock.contents import locks_of, uses_of

    return uses_of(locks_of(app.catalog), _built(app))


def _built(app: App) -> tuple[BuiltWheel, ...]:
    from lj_image.lock.built_wheels import built_wheels

    return built_wheels(app.config.cache_dir)
