"""How many of the first layers must recompute so that training fits: found by simulating, not by dividing.

The first layers, as they run last in backward: by then the kept layers' activations are freed.
"""

from __future__ import annotations

from collections.abc import Iterator
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
    peaks = [simulate(step, count) for count in (range(shape.layers + 1) if layers is None else (layers,))]
    index = next((at for at, peak in enumerate(peaks) if budget.fits(peak)), None)
    if index is not None:
        chosen = index
    else:  # nothing fits: the fewest that reach the floor
        chosen = min(range(len(peaks)), key=lambda at: peaks[at].bytes)
    k, peak = (chosen if layers is None else layers), peaks[chosen]
    fits = index is not None
    needed = budget.needed(peak)
    band = budget.calibration.band
    return Recommendation(
        k=k, layers=shape.layers, peak=peak, fits=fits, why=_why(peaks, chosen, fits, layers),
        needed_bytes=needed, available_bytes=budget.available,
        low_bytes=round(needed * (1 - band)), high_bytes=round(needed * (1 + band)),
        step_time=step_time(shape, setup.recomputing(k), device, efficiency), calibration=budget.calibration,
        remedies=() if fits else tuple(_remedies(shape, setup, budget)),
    )  # fmt: skip


def _why(peaks: list[Peak], chosen: int, fits: bool, given: int | None) -> str:
    peak = peaks[chosen]
    phase = peak.highest.name
    if given is not None:
        return f"{given} layers were asked for; the peak is at: {phase}"
    if fits and chosen == 0:
        return f"nothing needs to recompute; the peak is at: {phase}"
    if fits:
        return f"{chosen} is the smallest number that fits; the peak is at: {phase}"
    floor = f"recomputing all {len(peaks) - 1} layers does not fit either; the floor is set by: {phase}"
    return f"{floor}, mostly {_largest_part(peak)}"


def _largest_part(peak: Peak) -> str:
    parts = peak.highest.parts
    return max(parts, key=lambda name: parts[name])


def _remedies(shape: ModelShape, setup: TrainingSetup, budget: Budget) -> Iterator[str]:
    """Changes that would fit with some number of recomputed layers, each simulated on its own."""
    for text, changed in _changes(setup):
        step = step_of(shape, changed)
        # The floor is reached with all layers recomputed, or somewhat earlier.
        lowest = next((k for k in range(shape.layers + 1) if budget.fits(simulate(step, k))), None)
        if lowest is not None:
            yield f"{text}: fits with {lowest} of {shape.layers} layers recomputed"


def _changes(setup: TrainingSetup) -> Iterator[tuple[str, TrainingSetup]]:
    if setup.loss == "plain":
        yield "--loss chunked (or liger)", replace(setup, loss="chunked")
    if setup.micro_batch > 1:
        half = setup.micro_batch // 2
        yield f"--micro-batch {half}", replace(setup, micro_batch=half)
        if half > 1:
            yield "--micro-batch 1", replace(setup, micro_batch=1)
    if setup.attention == "eager":
        yield "--attention sdpa", replace(setup, attention="sdpa")
    sharded = setup.framework in ("deepspeed", "hf")
    if sharded and setup.zero_stage < 3:
        yield "--zero 3", replace(setup, zero_stage=3)
    if sharded and setup.zero_stage == 3 and not setup.zero_init:
        yield "--zero-init", replace(setup, zero_init=True)
    if sharded and not setup.optimizer_offload and setup.zero_stage:
        yield "offload the optimizer to the CPU", replace(setup, optimizer_offload=True)
    for factor in (2, 4, 8, 16):
        ranks = setup.world_size * factor
        yield f"--world-size {ranks}", replace(setup, world_size=ranks)
    if setup.loss == "plain":
        for factor in (2, 4, 8):
            ranks = setup.world_size * factor
            yield f"--loss chunked --world-size {ranks}", replace(setup, loss="chunked", world_size=ranks)
    yield f"--sequence {setup.sequence // 2}", replace(setup, sequence=setup.sequence // 2)
