"""`ljperf benchmark`: train on tokens, say how fast, and in how much memory."""

from __future__ import annotations

import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from ljperf.benchmark.request import Request, read_ds_config, setup_of, target_of
from ljperf.errors import LjperfError, PartialResultError, UsageError

FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("benchmark")
@click.option("--model", "target", metavar="FRAMEWORK/MODEL", help="deepspeed, fsdp, ddp or hf, and a model: hf/tiny.")
@click.option("--micro-batch", default=1, show_default=True, help="Sequences per device and forward.")
@click.option("--sequence", type=int, help="Tokens per sequence.  [default: 2048, or the model's maximum]")
@click.option("--accumulation", default=1, show_default=True, help="Forwards per optimizer step.")
@click.option(
    "--global-batch", type=int, help="Sequences per optimizer step over all ranks, instead of --accumulation."
)
@click.option("--zero", type=click.IntRange(0, 3), help="DeepSpeed's stage.  [default: 3; hf: without DeepSpeed]")
@click.option("--precision", type=click.Choice(["bf16", "fp16", "fp32"]), default="bf16", show_default=True)
@click.option("--compile", "compiled", is_flag=True, help="Compile the decoder blocks.")
@click.option("--compile-backend", "backend", default="inductor", show_default=True)
@click.option("--recompute", default="none", show_default=True, help="none, full, auto, or the number of layers.")
@click.option(
    "--attention", type=click.Choice(["sdpa", "eager", "flash_attention_2"]), default="sdpa", show_default=True
)
@click.option("--loss", type=click.Choice(["plain", "chunked", "liger"]), default="plain", show_default=True)
@click.option("--steps", default=10, show_default=True, help="Measured steps.")
@click.option("--warmup", default=3, show_default=True, help="Steps before them.")
@click.option("--seed", default=0, show_default=True)
@click.option("--learning-rate", default=1e-4, show_default=True)
@click.option(
    "--headroom", type=click.FloatRange(0, 0.9), help="Part of the memory to leave free with --recompute auto."
)
@click.option("--tokens", type=FILE, help="Train on these: .npy, .bin (uint16), .u32, or text.  [default: random]")
@click.option("--ds-config", type=FILE, help="A DeepSpeed config; what it leaves open is filled in.")
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", show_default=True)
@click.option(
    "--nproc", type=click.IntRange(1), help="Ranks on this machine (with --hostfile: on each; --ray: in all)."
)
@click.option("--hostfile", type=FILE, help="Machines for DeepSpeed's launcher.")
@click.option("--ray", is_flag=True, help="Let Ray Train start the ranks.")
@click.option("--trace", type=FILE, help="Keep a chrome trace of two further steps.")
@click.option("--json", "json_path", type=FILE, help="Keep the result.")
@click.option("--html", "html_path", type=FILE, help="Keep a page with the curves.")
@click.option("--compare", nargs=2, type=FILE, metavar="A.json B.json", help="Show two kept results side by side.")
@click.option("--into", type=click.Path(path_type=Path, file_okay=False), hidden=True)
def command(target: str | None, compare: tuple[Path, Path] | None, **options: Any) -> int:
    """Train on synthetic tokens and say how fast, and with how much memory."""
    if compare:
        return _compare(*compare)
    if not target:
        raise UsageError("which model?", hint="such as: ljperf benchmark --model deepspeed/tiny")
    signal.signal(signal.SIGTERM, _interrupt)  # schedulers send it: as Ctrl-C, it leaves a partial result
    places = {name: options.pop(name) for name in ("nproc", "hostfile", "ray", "json_path", "html_path", "into")}
    framework, model = target_of(target)
    request = Request(framework=framework, model=model, **options)
    if places["into"]:
        return _as_rank(request, places["into"])
    return _deliver(_measured(request, **places), places["json_path"], places["html_path"])


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _compare(first: Path, second: Path) -> int:
    from ljperf.benchmark.result import read
    from ljperf.benchmark.show import comparison

    click.echo(comparison(read(first), read(second)))
    return 0


def _say(line: str) -> None:
    click.echo(line, err=True)


def _measured(
    request: Request, *, nproc: int | None, hostfile: Path | None, ray: bool, json_path: Path | None, **_: Any
) -> dict[str, Any] | None:
    """The result, complete or not; None on a rank that is not the first."""
    from ljperf.benchmark import launch, place

    if place.launched():
        return _here(request, json_path)
    _check_early(request, nproc or 1, known=not hostfile)
    if ray:
        return launch.through_ray(request, nproc or 1)
    if not hostfile and nproc in (None, 1):
        return _here(request, json_path)
    with tempfile.TemporaryDirectory(prefix="ljperf-") as folder:
        arguments = [*launch.arguments_of(request), "--into", folder]
        command = launch.deepspeed(hostfile, nproc, arguments) if hostfile else launch.torchrun(nproc or 1, arguments)
        try:
            return launch.wait_for(command, Path(folder), nproc or 1, sys.stderr)
        except KeyboardInterrupt:
            result = launch.kept(Path(folder))
            if result is None:
                raise
            return {**result, "complete": False, "ended": "interrupted", "failure": "interrupted"}


def _check_early(request: Request, world_size: int, known: bool) -> None:
    """What cannot be is said before anything starts; with a hostfile each rank says it."""
    from ljperf.models.catalog import model_named

    shape = model_named(request.model)
    if known:
        setup_of(request, shape, world_size, read_ds_config(request.ds_config))


def _here(request: Request, json_path: Path | None) -> dict[str, Any] | None:
    from ljperf.benchmark.run import EndedEarlyError, run_rank

    try:
        return run_rank(request, json_path, _say)
    except EndedEarlyError as early:
        return early.result


def _as_rank(request: Request, into: Path) -> int:
    """One of our launcher's ranks: everything goes into the folder."""
    from ljperf.benchmark import launch
    from ljperf.benchmark.result import text_of
    from ljperf.benchmark.run import EndedEarlyError, run_rank
    from ljperf.report.files import write_whole

    launch.end_with_parent()
    try:
        result = run_rank(request, into / launch.RESULT, _say)
    except EndedEarlyError as early:
        write_whole(into / launch.RESULT, text_of(early.result))
        launch.keep_error(into, 0, early.reason)
        return 1
    except Exception as error:
        import os

        launch.keep_error(into, int(os.environ.get("RANK", "0")), error)
        if isinstance(error, LjperfError):
            return error.exit_code
        raise
    if result:
        write_whole(into / launch.RESULT, text_of(result))
    return 0


def _deliver(result: dict[str, Any] | None, json_path: Path | None, html_path: Path | None) -> int:
    """Print first: a disk that is full keeps nobody from reading."""
    if result is None:
        return 0
    from ljperf.benchmark.result import text_of
    from ljperf.benchmark.show import page_of
    from ljperf.benchmark.show import text_of as table_of
    from ljperf.report.files import write_whole

    click.echo(table_of(result))
    if json_path:
        write_whole(json_path, text_of(result))
    if html_path:
        write_whole(html_path, page_of(result))
    return 0 if result["complete"] else _ended_early(result)


def _ended_early(result: dict[str, Any]) -> int:
    if result["ended"] == "interrupted":
        return 130
    measured = len(result["step_seconds"]["all"])
    message = f"ended early: {result['failure']}"
    if not measured or result["ended"] == "diverged":
        raise LjperfError(message)
    raise PartialResultError(message, hint=f"the {measured} measured steps are kept, marked as not complete")
