"""A model of a step's time: arithmetic over peak at a stated efficiency. It ranks choices; it is no measurement."""

from __future__ import annotations

from dataclasses import dataclass

from ljperf.devices import Device
from ljperf.models.flops import flops_per_token, hardware_flops_per_token
from ljperf.models.shape import ModelShape
from ljperf.setup import TrainingSetup

# Published for dense models of 7B to 70B on A100 to H200, bf16: 33 to 58% of dense peak, without recomputation's share.
EFFICIENCY = 0.40


@dataclass(frozen=True, slots=True)
class StepTime:
    """Predicted for one device."""

    seconds: float
    tokens_per_second: float
    """Of one device."""
    mfu: float
    """Model FLOPs over peak: recomputation is not counted."""
    efficiency: float
    """The assumption: hardware FLOPs over peak."""


def step_time(
    shape: ModelShape, setup: TrainingSetup, device: Device, efficiency: float = EFFICIENCY
) -> StepTime | None:
    """Time of one optimizer step; None where the device's peak for that precision is unknown.

    Exposed communication is not modelled: it is part of the assumed efficiency.
    """
    peak = device.peak(setup.precision)
    if peak is None:
        return None
    tokens = setup.tokens * setup.accumulation
    hardware = hardware_flops_per_token(shape, setup.sequence, setup.recompute_layers)
    seconds = hardware * tokens / (peak * efficiency)
    model = flops_per_token(shape, setup.sequence)
    return StepTime(seconds, tokens / seconds, model * tokens / seconds / peak, efficiency)
