"""`lj-image release`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from lj_image.cli.app import App
from lj_image.cli.options import builder_option

if TYPE_CHECKING:
    from lj_image.catalog.release import Release
    from lj_image.plan import Plan
    from lj_image.release.build import Workshop
    from lj_image.release.builder_choice import BuilderName
    from lj_image.release.pipeline.report import RunReport
    from lj_image.release.pipeline.work import Means
    from lj_image.release.publish import Sender
    from lj_image.release.record import Built


@click.command("release")
@click.argument("release")
@click.option("--variant", help="The variant; by default the first one that is configured.")
@click.option("--region", "regions", multiple=True, help="Region whose VPC name to publish; repeat it, or 'all'.")
@click.option("--public", is_flag=True, help="Publish the public name, too.")
@builder_option
@click.option("--dry-run", is_flag=True, help="Check the files, ask every registry, build and send nothing.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for summary, proof and notes; by default build/release/<image>/<release>-<variant>.",
)
@click.option("--summary", type=click.Path(path_type=Path, dir_okay=False), help="Add the summary to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(
    app: App,
    release: str,
    variant: str | None,
    regions: tuple[str, ...],
    public: bool,
    builder: BuilderName,
    dry_run: bool,
    output: Path | None,
    summary: Path | None,
    as_json: bool,
) -> int:
    """Lint, check the lock, build, verify, push and write the notes: one run, which goes on where it ended.

    What was done and still holds is skipped. Exit code 3: some places do not have it; the same command sends the rest.

    \b
    lj-image release 25.02 --public --region all
    lj-image release 25.02 --region cn-beijing
    lj-image release 25.02 --public --builder oci
    """
    from lj_image.release.pipeline import run
    from lj_image.release.pipeline.work import Asked

    asked = Asked(release, variant, regions, public, dry_run, builder, output, summary)
    with _ended_like_ctrl_c():
        report = run.release(asked, _means(app))
    if as_json:
        app.print_json(report.to_json())
    else:
        _show(app, report)
    if report.error is not None:
        raise report.error
    return 0


def _means(app: App) -> Means:
    from lj_image.builders.docker import engine
    from lj_image.builders.docker.view import view
    from lj_image.catalog.lint import lint
    from lj_image.cli.carried import means
    from lj_image.cli.workshop import workshop
    from lj_image.release.builder_choice import choose_builder
    from lj_image.release.pipeline.work import Means
    from lj_image.release.senders import sender_for
    from lj_image.templating import project_templates

    def tools(release: Release) -> Workshop:
        return workshop(app, release, engine.connect())

    def sender(release: Release, built: Built | None) -> Sender:
        return sender_for(built, release, means(app), app.say, connect=engine.connect)

    def assemble(plan: Plan) -> tuple[Built, bool]:
        from lj_image.cli.assembling import assemble_one  # late, as it brings all of the assembler

        return assemble_one(app, plan)

    return Means(
        catalog=app.catalog,
        config=lambda: app.config,
        lint=lambda release: lint(app.catalog, release),
        resolve=app.release,
        lock=app.lock,
        templates=lambda: project_templates(app.catalog.root, app.config.cache_dir),
        choose=lambda wanted: choose_builder(wanted, ()),
        workshop=tools,
        assemble=assemble,
        sender=sender,
        observe=view,
        say=app.say,
    )


def _show(app: App, report: RunReport) -> None:
    """Print the steps, the places, and last, on one line, every reference that holds the image."""
    app.print(report.title)
    app.print_table(
        ("STEP", "STATE", "SECONDS", "WHAT"),
        [(step.name, step.state, f"{step.seconds:,.1f}", step.what.partition("\n")[0]) for step in report.steps],
    )
    if report.work and report.work.outcome:
        for line in report.work.outcome.lines():
            app.print(line)
    if report.published:
        app.print(" ".join(f"{item.reference}@{item.digest}" for item in report.published))


@contextmanager
def _ended_like_ctrl_c() -> Iterator[None]:
    """Within this block SIGTERM, which CI sends to a job that is given up, stops a step as cleanly as Ctrl-C does."""
    import signal

    def interrupt(number: int, frame: Any) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
