"""`lj-image verify`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lj_image.cli.app import App, is_terminal

if TYPE_CHECKING:
    import docker

    from lj_image.plan import Plan
    from lj_image.verify.report import VerifyReport


@click.command("verify")
@click.argument("subject", metavar="[RELEASE|IMAGE]", required=False)
@click.option("--variant", help="The variant; by default the first one that is configured.")
@click.option("--junit", type=click.Path(path_type=Path), help="Write JUnit XML to this file.")
@click.option("--all", "all_checks", is_flag=True, help="Show every check, not only components and failures.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(
    app: App, subject: str | None, variant: str | None, junit: Path | None, all_checks: bool, as_json: bool
) -> int:
    """Prove that the versions inside an image are those promised; exit code 1 when they are not.

    Without an argument, the image built last.

    \b
    lj-image verify 25.02
    lj-image verify training-nv-pytorch:25.02-open --junit report.xml
    """
    from lj_image.builders.docker import engine
    from lj_image.cli.workshop import workshop
    from lj_image.release.proof import prove

    if subject is not None and (":" in subject or subject.startswith("sha256")):
        api = engine.connect()
        plan, image_id = _claimed(app, api, subject)
    else:
        plan, image_id = _recorded(app, subject, variant)  # what is wrong in a file needs no engine to be told
        api = engine.connect()
    report, _ = prove(plan, image_id, workshop(app, plan.release, api), junit=junit)
    _show(app, report, as_json, all_checks)
    return 0 if report.passed else 1


def _recorded(app: App, name: str | None, variant: str | None) -> tuple[Plan, str]:
    """Return the plan of a release, and the image that its record names; without a name, of the one built last."""
    from lj_image.cli.last import last_built
    from lj_image.release.proof import built_image
    from lj_image.release.record import Records

    if name is None:
        name, variant = last_built(app)
    release = app.release(name, variant)
    plan = app.plan(release)
    record = Records(app.config.cache_dir, release.image).read(plan.key)
    return plan, built_image(record, plan.key, release.image_in_commands)


def _claimed(app: App, api: docker.APIClient, reference: str) -> tuple[Plan, str]:
    """Return the plan of the release that an image says it is."""
    from lj_image.errors import UsageError
    from lj_image.lock.trial import lock_for
    from lj_image.plan import plan
    from lj_image.release.assembled import load_named
    from lj_image.release.proof import claim_of

    claim = claim_of(api, reference)
    if claim is None and (loaded := load_named(reference, api, app.config, app.say)) is not None:
        claim = claim_of(api, loaded)
    if claim is None:
        raise UsageError(f"the engine has no image {reference}", hint="pull it, or name a release")
    release = app.release(f"{claim.image}/{claim.release}", claim.variant, overridden=claim.overridden)
    lock = lock_for(release, app.config) if claim.overridden else app.lock(release)
    if lock.digest != claim.lock:
        app.say(f"{reference} was built from another lock than {lock.key} has now; it is held against the one of now")
    return plan(release, lock, only=claim.only), claim.image_id


def _show(app: App, report: VerifyReport, as_json: bool, all_checks: bool) -> None:
    import sys

    from lj_image.verify.report import plain_lines, show, to_json

    if as_json:
        app.print_json(to_json(report))
    elif is_terminal(sys.stdout):
        from rich.console import Console

        show(report, Console(), all_checks=all_checks)
    else:
        for line in plain_lines(report, all_checks=all_checks):
            app.print(line)
