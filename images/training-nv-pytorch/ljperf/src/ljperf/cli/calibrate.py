"""`ljperf calibrate`: measure this device's two constants of the memory model."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ljperf.errors import LjperfError

if TYPE_CHECKING:
    from ljperf.devices import Device

GB = 10**9
TOLERANCE = 0.01


class NoGpuError(LjperfError):
    """The constants are a GPU's."""


class ModelDeviatesError(LjperfError):
    """The phase model is further from PyTorch's count than promised."""


@click.command("calibrate")
@click.option("--into", type=click.Path(path_type=Path, file_okay=False), help="Folder.  [default: the user's data]")
@click.option("--again", is_flag=True, help="Forget what an interrupted run has kept.")
@click.option("--model-only", is_flag=True, help="No GPU: hold the phase model against PyTorch's own count.")
def command(into: Path | None, again: bool, model_only: bool) -> int:
    """Measure what the allocator reserves beyond tensors, and what context and communicator take.

    Interrupted, it continues where it was. Started by torchrun on several GPUs, the communicator is measured too.
    """
    if model_only:
        return _check_model()
    from ljperf.devices import found

    device = found()
    if device is None:
        raise NoGpuError(
            "nothing to measure: both constants are a GPU's (its allocator, its context), and there is none here",
            hint="what a CPU can check is the count of tensors' bytes: ljperf calibrate --model-only",
        )
    return _calibrate(device, into, again=again)


def _calibrate(device: Device, into: Path | None, *, again: bool) -> int:
    from ljperf.memory import on_device
    from ljperf.memory.calibration import calibration_path, written
    from ljperf.memory.measuring import configurations, fitted, measured_all, partial_path
    from ljperf.report.files import write_whole

    rank, ranks = on_device.join_ranks()
    path, environment = calibration_path(device.name, into), on_device.environment()
    # Ranks measure together, each its own device; the first one keeps and says.
    partial = partial_path(device.name, into).with_suffix(f".{rank}.json") if rank else partial_path(device.name, into)
    path.parent.mkdir(parents=True, exist_ok=True)
    if again:
        partial.unlink(missing_ok=True)
    kept = []
    for measured, earlier in measured_all(configurations(device.memory_bytes), on_device.measure, partial, environment):
        kept.append(measured)
        if rank == 0:
            click.echo(_line(measured.name, measured.predicted, measured.allocated, measured.reserved, earlier))
    if rank:
        partial.unlink(missing_ok=True)
        return 0
    alone = "" if ranks > 1 else "; one rank, so a published 1.2 GB stands for the communicator"
    source = f"measured {datetime.date.today()} on {environment}{alone}"
    calibration = fitted(device.name, kept, source, ranks=ranks)
    write_whole(path, written(calibration))
    partial.unlink(missing_ok=True)
    click.echo(
        f"{device.name}: allocator × {calibration.reserved_ratio:g},"
        f" beside it {calibration.context_bytes / GB:.2f} GB, band ±{calibration.band:.1%}\n{path}"
    )
    return 0


def _line(name: str, predicted: int, allocated: int, reserved: int, earlier: bool) -> str:
    error = predicted / allocated - 1
    again = " (kept from before)" if earlier else ""
    return f"{name}: {allocated / GB:.2f} GB of tensors, predicted {error:+.1%}, reserved {reserved / GB:.2f} GB{again}"


def _check_model() -> int:
    """Small models on a CPU: prediction and count side by side."""
    from ljperf.memory.tracking import compared
    from ljperf.report.table import table

    rows = list(compared())
    headers = ("model", "recompute", "counted bytes", "predicted", "difference")
    click.echo(table(headers, [(*row[:4], f"{row[3] / row[2] - 1:+.3%}") for row in rows]))
    worst = max(abs(row[3] / row[2] - 1) for row in rows)
    if worst > TOLERANCE:
        raise ModelDeviatesError(
            f"the phase model is off by {worst:.1%} with this PyTorch and Transformers",
            hint="plans are that much less exact here; please report the versions",
        )
    click.echo("\nno constant was measured: those are a GPU's")
    return 0
