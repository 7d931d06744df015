"""One rank's run: join, build, train under the meter, agree on the result."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ljperf.benchmark import checks, ds_config, usage
from ljperf.benchmark.frameworks.job import Job
from ljperf.benchmark.place import NoDeviceError, Place, found, joined
from ljperf.benchmark.request import Request, read_ds_config, setup_of, uses_deepspeed
from ljperf.benchmark.result import Ended, Machine, Measured, document, merged
from ljperf.benchmark.saving import Saver, nothing_on_stdout
from ljperf.benchmark.steps import Meter, NotFiniteLossError, Tracer
from ljperf.errors import LjperfError
from ljperf.models.catalog import model_named

Say = Callable[[str], None]


class NoMemoryError(LjperfError):
    """The device's memory is too small."""


class EndedEarlyError(Exception):
    """The run ended before its last step; carries what there is, and why."""

    def __init__(self, result: dict[str, Any], reason: BaseException) -> None:
        super().__init__(str(reason))
        self.result = result
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Run:
    """All that a result needs but the measurement."""

    job: Job
    machine: Machine
    notes: tuple[str, ...]

    def result(self, measured: Measured, ended: Ended = "well", failure: str | None = None) -> dict[str, Any]:
        """The document of this run."""
        job = self.job
        return document(
            job.request,
            job.shape,
            job.setup,
            self.machine,
            measured,
            ended=ended,
            failure=failure,
            notes=self.notes,
        )


def run_rank(request: Request, partial_path: Path | None, say: Say = lambda _: None) -> dict[str, Any] | None:
    """Train as one of the launcher's ranks, or alone; the result on rank 0, None on the others.

    Raises EndedEarlyError on rank 0 after the first step, LjperfError before it and on other ranks.
    """
    shape = model_named(request.model)
    place = found(request.device)
    if place.kind == "cpu" and request.precision == "fp16":
        raise NoDeviceError("fp16 needs a GPU: its gradients are scaled there", hint="use --precision bf16 or fp32")
    if place.kind == "cpu":
        os.environ["DS_ACCELERATOR"] = "cpu"  # DeepSpeed decides at its import
    config = read_ds_config(request.ds_config)
    setup = setup_of(request, shape, place.world_size, config)
    with nothing_on_stdout(), joined(place):
        notes: list[str] = []
        if request.recompute == "auto":
            setup, why = checks.recommended(shape, setup, place, request.headroom)
            notes.append(why)
        complete: dict[str, Any] = {}
        if uses_deepspeed(request):
            complete = ds_config.complete(config, setup, request, place)
            notes += checks.findings(config, complete, setup)
        job = Job(request, shape, setup, place, complete)
        return _measure(Run(job, _machine(place, setup.precision), tuple(notes)), partial_path, say)


def _machine(place: Place, precision: str) -> Machine:
    peak = None
    if place.kind == "cuda":
        from ljperf import devices

        device = devices.found(place.local_rank)
        peak = device.peak_flops.get(precision) if device else None
    return Machine(place.kind, usage.device_name(place), peak, usage.versions())


def _measure(run: Run, partial_path: Path | None, say: Say) -> dict[str, Any] | None:
    from ljperf.benchmark.frameworks import prepare

    job, first = run.job, run.job.place.rank == 0
    talk = say if first else lambda _: None
    for note in run.notes:
        talk(note)
    talk(f"building {job.shape.name} for {job.setup.framework} on {job.place.world_size} × {job.place.kind}")
    with _translated(job):
        loop = prepare(job)
    usage.reset(job.place)
    with Saver(partial_path if first else None) as saver:
        meter = _meter(run, saver, talk)
        try:
            with _translated(job):
                loop.run(meter)
        except (LjperfError, KeyboardInterrupt, Exception) as error:
            if first and meter.done:
                raise EndedEarlyError(_partly(run, meter, *_reason(error)), error) from error
            raise
    return _agreed(run, meter)


@contextlib.contextmanager
def _translated(job: Job) -> Iterator[None]:
    """PyTorch's lack of memory, as ours."""
    import torch

    try:
        yield
    except torch.OutOfMemoryError as error:
        again = job.setup.recompute_layers < job.shape.layers
        advice = "--recompute auto, " if again else ""
        hint = f"{advice}a smaller --micro-batch, or --loss chunked; `ljperf plan` says what fits"
        raise NoMemoryError(str(error).splitlines()[0], hint=hint) from error


def _meter(run: Run, saver: Saver, talk: Say) -> Meter:
    job = run.job

    def after(meter: Meter) -> None:
        phase = "warm-up" if meter.done <= meter.warmup else "measured" if len(meter.seconds) < meter.steps else "last"
        took = f", {meter.seconds[-1]:.3f} s" if meter.seconds else ""
        talk(f"step {meter.done} of {meter.total} ({phase}): loss {meter.losses[-1]:.4f}{took}")
        saver.offer(partial(_partly, run, meter, "failed", "the run had not ended when this was saved"))

    tracer = _Trace(job.request.trace, job.place) if job.request.trace else None
    return Meter(job.request.warmup, job.request.steps, _synchroniser(job.place), tracer=tracer, after=after)


def _reason(error: BaseException) -> tuple[Ended, str]:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", "interrupted"
    if isinstance(error, LjperfError):
        return "diverged" if isinstance(error, NotFiniteLossError) else "failed", error.message
    return "failed", f"{type(error).__name__}: {error}"


def _synchroniser(place: Place) -> Callable[[], None]:
    if place.kind == "cpu":
        return lambda: None
    import torch

    return partial(torch.cuda.synchronize, place.local_rank)


def _seen(run: Run, meter: Meter) -> Measured:
    return Measured(tuple(meter.seconds), tuple(meter.losses), usage.peaks(run.job.place), usage.graphs())


def _partly(run: Run, meter: Meter, ended: Ended, failure: str) -> dict[str, Any]:
    notes = (*run.notes, "partial: times of rank 0 alone")
    return replace(run, notes=notes).result(_seen(run, meter), ended, failure)


def _agreed(run: Run, meter: Meter) -> dict[str, Any] | None:
    """All ranks' measurements as one, on rank 0."""
    import torch.distributed as dist

    mine = _seen(run, meter)
    everyone: list[Any] = [None] * run.job.place.world_size
    dist.all_gather_object(everyone, mine)
    return run.result(merged(everyone)) if run.job.place.rank == 0 else None


class _Trace(Tracer):
    """A chrome trace of this rank, kept by rank 0."""

    def __init__(self, path: Path, place: Place) -> None:
        from torch.profiler import ProfilerActivity, profile

        kinds = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if place.kind == "cuda" else [])]
        self._profile: contextlib.AbstractContextManager[Any] = profile(activities=kinds, record_shapes=True)
        self._path = path if place.rank == 0 else None

    def start(self) -> None:
        """Begin to record."""
        self._profile.__enter__()

    def stop(self) -> None:
        """Write the trace beside its place, then rename it: a full disk leaves no half of one."""
        self._profile.__exit__(None, None, None)
        if self._path:
            beside = self._path.with_name(f".{self._path.name}.partial")
            self._profile.export_chrome_trace(str(beside))  # type: ignore[attr-defined]
            beside.replace(self._path)
