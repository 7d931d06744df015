"""Measuring a device type's two constants: a few short trainings, each kept as soon as it is done.

The measuring itself is handed in, so that what is kept, continued and fitted needs no GPU.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ljperf.errors import LjperfError
from ljperf.memory.calibration import Calibration, calibration_path
from ljperf.memory.tracking import predicted_peak
from ljperf.models.shape import ModelShape
from ljperf.report.files import write_whole
from ljperf.setup import TrainingSetup

# Vocabulary, MLP and attention of usual proportions; few layers, so that a batch fills the device and not the weights.
SHAPE = ModelShape("calibration", "llama", 2048, 8, 16, 8, 128, 5632, 32000, 8192)
FILL = 0.6  # of the memory: near enough to its end for the allocator to behave as it does there
COMMUNICATOR = 1_200_000_000  # published for rings of 8 GPUs and more; taken where only one rank measures
LEAST_BAND = 0.03


class NothingMeasuredError(LjperfError):
    """No configuration could be measured."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """One short training."""

    name: str
    shape: ModelShape
    setup: TrainingSetup


@dataclass(frozen=True, slots=True)
class Measured:
    """What one training took, in bytes."""

    name: str
    allocated: int
    """Tensors at the peak."""
    reserved: int
    """The allocator's, at its peak."""
    beside: int
    """Of the device, and neither: context, workspaces, communicator."""
    predicted: int
    """By the phase model, for `allocated`."""


Measure = Callable[[Configuration], Measured]


def configurations(memory_bytes: int) -> tuple[Configuration, ...]:
    """Six trainings that fill a device of that memory: no, half and all layers recompute, at two lengths."""
    return tuple(
        _filling(f"sequence-{sequence}-recompute-{layers}", sequence, layers, memory_bytes)
        for sequence in (2048, 8192)
        for layers in (0, SHAPE.layers // 2, SHAPE.layers)
    )


def _filling(name: str, sequence: int, layers: int, memory_bytes: int) -> Configuration:
    """The largest micro batch of powers of two, at least 1, that the model predicts to take FILL of the memory."""
    setup = TrainingSetup(sequence=sequence, recompute_layers=layers)
    while True:
        larger = replace(setup, micro_batch=2 * setup.micro_batch)
        if predicted_peak(SHAPE, larger).bytes > FILL * memory_bytes:
            return Configuration(name, SHAPE, setup)
        setup = larger


def measured_all(
    wanted: Sequence[Configuration], measure: Measure, partial: Path, environment: str
) -> Iterator[tuple[Measured, bool]]:
    """Each configuration's measurement, and whether it was kept from an earlier, interrupted run.

    After each, all so far are in `partial`; they are continued only in the same environment.
    """
    kept = read_partial(partial, environment)
    for configuration in wanted:
        if configuration.name in kept:
            yield kept[configuration.name], True
            continue
        kept[configuration.name] = measure(configuration)
        rows = [asdict(one) for one in kept.values()]
        write_whole(partial, json.dumps({"environment": environment, "measured": rows}, indent=1) + "\n")
        yield kept[configuration.name], False


def read_partial(partial: Path, environment: str) -> dict[str, Measured]:
    """What an interrupted run has kept; nothing if it was made elsewhere, or cannot be read."""
    try:
        document = json.loads(partial.read_text(encoding="utf-8"))
        if document["environment"] != environment:
            return {}
        return {row["name"]: Measured(**row) for row in document["measured"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def partial_path(device: str, folder: Path | None = None) -> Path:
    """Where unfinished measurements of a device type are kept."""
    return calibration_path(device, folder).with_suffix(".partial.json")


def fitted(device: str, measured: Sequence[Measured], source: str, *, ranks: int) -> Calibration:
    """The two constants that cover all measurements, and a band as wide as the worst prediction with them.

    Raises NothingMeasuredError without a measurement.
    """
    usable = [one for one in measured if one.allocated > 0]
    if not usable:
        raise NothingMeasuredError("nothing was measured, so there is nothing to fit", hint="see the messages above")
    ratio = max(one.reserved / one.allocated for one in usable)
    beside = max(one.beside for one in usable) + (0 if ranks > 1 else COMMUNICATOR)
    worst = max(abs(one.predicted * ratio - one.reserved) / one.reserved for one in usable)
    return Calibration(device, round(max(ratio, 1.0), 4), beside, round(max(worst, LEAST_BAND), 4), True, source)
