"""`ljperf ablation`: what each optimisation contributes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import click

from ljperf.ablation.steps import TITLES
from ljperf.errors import UsageError


@click.command(
    "ablation",
    epilog="Options of `ljperf benchmark` for all steps follow --, e.g.: -- --micro-batch 1 --sequence 4096 --steps 20",
)
@click.option("--model", required=True, help="FRAMEWORK/MODEL, as for `ljperf benchmark`.")
@click.option("--steps", default=",".join(TITLES), show_default=True, help="Which, in their order.")
@click.option("--repeats", type=click.IntRange(1), default=5, show_default=True, help="Runs of each step, interleaved.")
@click.option("--image", "images", multiple=True, metavar="STEP=REF", help="From this step on, in this image ('here').")
@click.option("--baseline-image", metavar="REF", help="The same as --image base=REF.")
@click.option("--env", "environment", multiple=True, metavar="STEP:NAME=VALUE", help="Set from this step on.")
@click.option("--recompute", default="auto", show_default=True, help="Of the checkpoint step: auto, or a number K.")
@click.option("--docker-option", "engine_options", multiple=True, help="Passed to `docker run`, for image steps.")
@click.option("--confidence", type=click.FloatRange(0.5, 0.999), default=0.95, show_default=True)
@click.option(
    "--timeout", "timeout_s", type=click.FloatRange(1), default=1800, show_default=True, help="Of a run, in s."
)
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), help="Where runs are kept and continued.")
@click.option("--fresh", is_flag=True, help="Measure anew what the folder already holds.")
@click.option("--program", help="In place of this `ljperf`; a command line.", hidden=True)
@click.option("--json", "json_path", type=click.Path(dir_okay=False, path_type=Path), help="Write all numbers there.")
@click.option("--html", "html_path", type=click.Path(dir_okay=False, path_type=Path), help="Write a page with a plot.")
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def command(
    model: str,
    steps: str,
    repeats: int,
    images: tuple[str, ...],
    baseline_image: str | None,
    environment: tuple[str, ...],
    recompute: str,
    engine_options: tuple[str, ...],
    confidence: float,
    timeout_s: float,
    folder: Path | None,
    fresh: bool,
    program: str | None,
    json_path: Path | None,
    html_path: Path | None,
    options: tuple[str, ...],
) -> int:
    """Train with one optimisation more at every step, and say what each adds.

    base, +comm, +baseos, +compile, +checkpoint: each step is an environment or an image, each run a process of its own.
    Steps take turns, so that a drift of the machine touches all alike. Every run is kept in a folder; after an
    interruption the same command goes on where it was.
    """
    import shlex
    import sys

    from ljperf.ablation.commands import Measurement
    from ljperf.ablation.measure import measure
    from ljperf.ablation.steps import Asked

    base = [f"base={baseline_image}"] if baseline_image else []
    asked = Asked(_words(steps), _images([*base, *images]), _variables(environment), recompute)
    words = tuple(shlex.split(program)) if program else (sys.executable, "-m", "ljperf")
    measurement = Measurement(model, options, words, engine_options, timeout_s)
    where = folder or Path("ljperf-ablation") / model.replace("/", "-")
    outcome = measure(asked, measurement, repeats, where, fresh=fresh, confidence=confidence, progress=_progress)
    click.echo(outcome.text)
    _write(json_path, lambda: json.dumps(outcome.document, indent=2) + "\n")
    _write(html_path, lambda: outcome.page)
    if outcome.interrupted:
        raise KeyboardInterrupt
    return outcome.exit_code


def _words(steps: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in steps.split(",") if word.strip())


def _images(given: Iterable[str]) -> dict[str, str]:
    images: dict[str, str] = {}
    for text in given:
        step, found, reference = text.partition("=")
        if not (step and found and reference):
            raise UsageError(f"an image is STEP=REFERENCE, not {text!r}", hint="for example --image baseos=my/image:1")
        images[step] = reference
    return images


def _variables(given: Iterable[str]) -> dict[str, dict[str, str]]:
    variables: dict[str, dict[str, str]] = {}
    for text in given:
        step, colon, rest = text.partition(":")
        name, equals, value = rest.partition("=")
        if not (step and colon and name and equals):
            raise UsageError(f"a variable is STEP:NAME=VALUE, not {text!r}", hint="e.g. --env comm:NCCL_ALGO=Ring")
        variables.setdefault(step, {})[name] = value
    return variables


def _progress(line: str) -> None:
    click.echo(line, err=True)


def _write(path: Path | None, text: Callable[[], str]) -> None:
    from ljperf.report.files import write_whole

    if path:
        write_whole(path, text())
