"""`python -m ljperf.gpu`: measure, write, and say whether the promises hold."""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path

import click

from ljperf.cli import run
from ljperf.errors import LjperfError


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="Folder for the results.")
@click.option("--minutes", type=click.FloatRange(0.1), default=9.5, show_default=True, help="All of it.")
@click.option("--smoke", is_flag=True, help="The smallest form, on the CPU: shows that it runs, measures nothing.")
@click.option("--program", help="In place of this `ljperf`; a command line.", hidden=True)
def command(out: Path, minutes: float, smoke: bool, program: str | None) -> int:
    """Check the planner's predictions on this GPU, and measure what recomputing less and compiling gain.

    Exit code 0: all promises hold. 1: one does not. 3: something could not be measured.
    """
    from ljperf.gpu.clock import Clock
    from ljperf.gpu.machine import look
    from ljperf.gpu.measure import Session
    from ljperf.gpu.trials import this_program

    clock = Clock(minutes * 60)
    machine = look(use_gpu=not smoke)
    if not smoke and not machine.is_gpu:
        raise LjperfError("PyTorch sees no GPU here", hint="give --smoke to try the script on a CPU")
    words = tuple(shlex.split(program)) if program else this_program()
    session = Session(machine, out, clock, words, click.echo)
    with tempfile.TemporaryDirectory(prefix="ljperf-gpu-") as runs:
        try:
            session.run(Path(runs))
        finally:
            session.keep()
            _keep_logs(Path(runs), out)
    click.echo((out / "results.md").read_text(encoding="utf-8"))
    if any(verdict.met is False for verdict in session.found.verdicts):
        return 1
    return 0 if session.found.whole else 3


def _keep_logs(runs: Path, out: Path) -> None:
    """All runs' output in one file: what brings results back may count files."""
    from ljperf.report.files import write_whole

    logs = sorted(runs.rglob("*.log"))
    texts = [f"=== {log.stem}\n{log.read_text(encoding='utf-8', errors='replace')}" for log in logs]
    write_whole(out / "runs.log", "\n".join(texts))


if __name__ == "__main__":
    run(command)
