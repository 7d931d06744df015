"""How many of the first layers must recompute so that training fits: found by simulating, not by dividing.

The first layers, as they run last in backward: by then the kept layers' activations are freed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ljperf.devices import Device
from ljperf.memory.calibration import Calibration, calibration_for
from ljperf.memory.phases import Peak, simulate, step_of
from ljperf.memory.step_time import EFFICIENCY, StepTime, step_time
from ljperf.models.shape import ModelShape
from ljperf.setup import TrainingSetup

HEADROOM = 0.05


@dataclass(frozen=True, slots=True)
class Budget:
    """What there is on a device, and what a peak takes of it."""

    device: Device
    headroom: float
    calibration: Calibration

    @property
    def available(self) -> int:
        """Bytes that a plan may use."""
        return int(self.device.memory_bytes * (1 - self.headroom))

    def needed(self, peak: Peak) -> int:
        """Bytes of the device: tensors, what the allocator adds, context and communicator."""
        return self.calibration.needed(peak.bytes)

    def fits(self, peak: Peak) -> bool:
        """Is there room, as predicted?"""
        return self.needed(peak) <= self.available

    def fits_surely(self, peak: Peak) -> bool:
        """Is there room at the high end of the band?"""
        return self.needed(peak) * (1 + self.calibration.band) <= self.available


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What to do, and why."""

    k: int
    """So many of the first layers recompute; all of them if nothing fits."""
    layers: int
    peak: Peak
    fits: bool
    why: str
    needed_bytes: int
    available_bytes: int
    low_bytes: int
    """The band of the prediction."""
    high_bytes: int
    step_time: StepTime | None
    calibration: Calibration
    safe_k: int | None = None
    """The smallest number that fits at the high end of the band too; None if none does."""
    remedies: tuple[str, ...] = ()
    """What would help, where recomputing alone does not; each was simulated."""

    @property
    def sure(self) -> bool:
        """Does it fit at the high end of the band too?"""
        return self.fits and self.high_bytes <= self.available_bytes


def recommend(
    shape: ModelShape,
    setup: TrainingSetup,
    device: Device,
    headroom: float = HEADROOM,
    *,
    layers: int | None = None,
    calibration: Calibration | None = None,
    efficiency: float = EFFICIENCY,
) -> Recommendation:
    """The smallest number of first layers to recompute that fits `device`, less `headroom` (a part of its memory).

    `layers` fixes that number. Raises UsageError for what cannot train, whatever the memory.
    """
    budget = Budget(device, headroom, calibration or calibration_for(device.name))
    step = step_of(shape, setup)
    peaks = {k: simulate(step, k) for k in (range(shape.layers + 1) if layers is None else (layers,))}
    fitting = next((k for k, peak in peaks.items() if budget.fits(peak)), None)
    # Nothing fits: the fewest that reach the floor.
    k = min(peaks, key=lambda count: peaks[count].bytes) if fitting is None else fitting
    needed, band = budget.needed(peaks[k]), budget.calibration.band
    return Recommendation(
        k=k, layers=shape.layers, peak=peaks[k], fits=fitting is not None,
        why=_why(peaks, k, fits=fitting is not None, given=layers is not None),
        needed_bytes=needed, available_bytes=budget.available,
        low_bytes=round(needed * (1 - band)), high_bytes=round(needed * (1 + band)),
        step_time=step_time(shape, setup.recomputing(k), device, efficiency), calibration=budget.calibration,
        safe_k=next((count for count, peak in peaks.items() if budget.fits_surely(peak)), None),
        remedies=() if fitting is not None else tuple(_remedies(shape, setup, budget)),
    )  # fmt: skip


def _why(peaks: Mapping[int, Peak], k: int, *, fits: bool, given: bool) -> str:
    phase = peaks[k].highest.name
    if given:
        return f"{k} layers were asked for; the peak is at: {phase}"
    if fits and k == 0:
        return f"nothing needs to recompute; the peak is at: {phase}"
    if fits:
        return f"{k} is the smallest number that fits; the peak is at: {phase}"
    part = _largest_part(peaks[k])
    useless = f"{phase} sets the floor, mostly by {part}"
    if part == "logits":
        useless += ", which recomputing layers cannot lower"
    return f"recomputing all {len(peaks) - 1} layers does not fit either: {useless}"


def _largest_part(peak: Peak) -> str:
    parts = peak.highest.parts
    return max(parts, key=lambda name: parts[name])


def _remedies(shape: ModelShape, setup: TrainingSetup, budget: Budget) -> Iterator[str]:
    """Of each kind of change the smallest that fits with some number of recomputed layers, each simulated."""
    for changes in _changes(setup):
        for text, changed in changes:
            step = step_of(shape, changed)
            k = next((k for k in range(shape.layers + 1) if budget.fits(simulate(step, k))), None)
            if k is not None:
                yield f"{text} fits with {k} of {shape.layers} layers recomputed"
                break


Change = tuple[str, TrainingSetup]


def _changes(setup: TrainingSetup) -> Iterator[list[Change]]:
    """Kinds of changes, each from the smallest on."""
    chunked = [("--loss chunked (or liger)", replace(setup, loss="chunked"))] if setup.loss == "plain" else []
    yield chunked
    yield _batches(setup, "")
    if setup.attention == "eager":
        yield [("--attention sdpa", replace(setup, attention="sdpa"))]
    yield _sharded(setup)
    yield _ranks(setup, "")
    for text, changed in chunked:
        yield _batches(changed, f"{text} and ")
        yield _ranks(changed, f"{text} and ")
    if setup.sequence >= 4:
        yield [(f"--sequence {setup.sequence // 2}", replace(setup, sequence=setup.sequence // 2))]


def _batches(setup: TrainingSetup, before: str) -> list[Change]:
    sizes = [setup.micro_batch // factor for factor in (2, 4, 8, 16, 32) if setup.micro_batch >= factor]
    return [(f"{before}--micro-batch {size}", replace(setup, micro_batch=size)) for size in sizes]


def _ranks(setup: TrainingSetup, before: str) -> list[Change]:
    sizes = [setup.world_size * factor for factor in (2, 4, 8, 16)]
    return [(f"{before}--world-size {size}", replace(setup, world_size=size)) for size in sizes]


def _sharded(setup: TrainingSetup) -> list[Change]:
    if setup.framework not in ("deepspeed", "hf"):
        return []
    changes: list[Change] = []
    if setup.zero_stage == 3 and not setup.zero_init:
        changes.append(("--zero-init", replace(setup, zero_init=True)))
    changes += [(f"--zero {stage}", replace(setup, zero_stage=stage)) for stage in range(setup.zero_stage + 1, 4)]
    if setup.zero_stage:
        changes.append(("--offload-optimizer", replace(setup, optimizer_offload=True)))
    return changes
