"""`ljperf comm`: bandwidth of collectives."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ljperf.comm.operations import OPERATIONS

if TYPE_CHECKING:
    from ljperf.comm.group import Backend, Group
    from ljperf.comm.library import Library
    from ljperf.comm.operations import Operation
    from ljperf.comm.sweep import Row

DTYPES = ("float32", "bfloat16", "float16", "float64", "int32", "int64")


@click.command(
    "comm",
    epilog="Under torchrun it joins the ranks that are there, on many machines too: torchrun ... -m ljperf comm",
)
@click.option("--op", type=click.Choice([*OPERATIONS, "all"]), default="all-reduce", show_default=True)
@click.option("--sizes", default="1K..64M", show_default=True, help="Bytes: a range, which doubles, or a list.")
@click.option("--backend", type=click.Choice(["auto", "gloo", "nccl"]), default="auto", show_default=True)
@click.option("--nproc", type=click.IntRange(1), metavar="N", help="Ranks to start here; one for each GPU, or two.")
@click.option("--dtype", type=click.Choice(DTYPES), default="float32", show_default=True)
@click.option("--iters", type=click.IntRange(1), default=20, show_default=True, help="Calls of each size, at most.")
@click.option("--json", "json_path", type=click.Path(dir_okay=False, path_type=Path), help="Write all numbers there.")
def command(
    op: str, sizes: str, backend: Backend, nproc: int | None, dtype: str, iters: int, json_path: Path | None
) -> int:
    """Time collectives over a range of sizes, check their results, and say which library answers.

    Columns are those of nccl-tests: size is the larger of what a rank sends and receives, algbw is size by time, busbw
    what a ring puts on a link. Exit code 1 if a result is wrong or a rank fails; the file of --json then holds
    what was measured before, and is marked as not complete.
    """
    from ljperf.benchmark.place import launched
    from ljperf.comm.sizes import sizes_of

    bytes_ = sizes_of(sizes)
    if not launched():
        arguments = ["--op", op, "--sizes", sizes, "--backend", backend, "--dtype", dtype, "--iters", str(iters)]
        return _start(nproc, arguments, json_path)
    if nproc:
        from ljperf.errors import UsageError

        raise UsageError("--nproc, but a launcher has started the ranks", hint="leave --nproc out")
    operations = OPERATIONS if op == "all" else tuple(name for name in OPERATIONS if name == op)
    return _as_rank(operations, bytes_, backend, (dtype, iters), json_path)


def _start(nproc: int | None, arguments: list[str], json_path: Path | None) -> int:
    from ljperf.comm.group import backend_of, default_nproc, start
    from ljperf.errors import LjperfError

    ranks = nproc or default_nproc()
    if "nccl" in arguments:
        backend_of("nccl", ranks - 1)  # what cannot be is said once, not by each rank
    if json_path:
        arguments = [*arguments, "--json", str(json_path.absolute())]
    if start(ranks, arguments):
        raise LjperfError("a rank failed", hint="the reason is above")
    return 0


def _as_rank(
    operations: Sequence[Operation],
    sizes: tuple[int, ...],
    backend: Backend,
    plan: tuple[str, int],
    json_path: Path | None,
) -> int:
    """Every rank measures; rank 0 shows and keeps each row as soon as it is there."""
    from ljperf.comm import library
    from ljperf.comm.group import joined
    from ljperf.comm.sweep import NotSupportedError, Plan, sweep

    with joined(backend) as group:
        answers = (library.nccl() if group.backend == "nccl" else None) or library.gloo()
        shown = _Shown(group, answers, json_path if group.rank == 0 else None)
        for operation in operations:
            shown.begin(operation)
            try:
                for row in sweep(operation, sizes, Plan(plan[0], group.device, plan[1])):
                    shown.row(row)
            except NotSupportedError as error:
                if len(operations) == 1:
                    raise
                shown.note(error.message)
            shown.average(operation)
        shown.end()
    return 1 if any(row.wrong for row in shown.rows) else 0


class _Shown:
    """What rank 0 prints and keeps."""

    def __init__(self, group: Group, library: Library, json_path: Path | None) -> None:
        self.group, self.library, self.json_path = group, library, json_path
        self.rows: list[Row] = []

    def begin(self, operation: str) -> None:
        from ljperf.comm.report import heading

        self._say(heading(operation, self.group.ranks, self.group.machines, self.library))

    def row(self, row: Row) -> None:
        from ljperf.comm.report import line

        self.rows.append(row)
        self._say(line(row))
        self._keep(complete=False)

    def note(self, text: str) -> None:
        self._say(f"# {text}")

    def end(self) -> None:
        self._keep(complete=True)
        wrong = sum(row.wrong for row in self.rows)
        if wrong:
            self._say(f"# {wrong} elements are wrong: do not train with this library")

    def average(self, operation: str) -> None:
        from ljperf.comm.report import average

        self._say(average(row for row in self.rows if row.operation == operation))

    def _say(self, text: str) -> None:
        if self.group.rank == 0:
            click.echo(text)

    def _keep(self, *, complete: bool) -> None:
        if self.json_path is None:
            return
        from ljperf.comm.report import document
        from ljperf.report.files import write_whole

        group = self.group
        write_whole(self.json_path, document(self.rows, group.ranks, group.machines, self.library, complete=complete))
