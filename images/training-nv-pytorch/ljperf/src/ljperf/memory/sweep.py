"""Recommendations over a grid of setups."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from ljperf.devices import Device
from ljperf.errors import UsageError
from ljperf.memory.recommend import Recommendation, recommend
from ljperf.models.limits import SequenceTooLongError
from ljperf.models.shape import ModelShape
from ljperf.setup import TrainingSetup

AXES = ("micro_batch", "sequence", "world_size", "accumulation", "zero_stage")


@dataclass(frozen=True, slots=True)
class Cell:
    """One setup of the grid and its recommendation; None where the model has too few positions."""

    setup: TrainingSetup
    recommendation: Recommendation | None


def axes_of(texts: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Read `micro_batch=1,2,4`; dashes count as underscores. Raises UsageError with what can be swept."""
    axes: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        name = name.strip().replace("-", "_")
        numbers = [value.strip() for value in values.split(",") if value.strip()]
        if not equals or name not in AXES or not numbers or not all(value.isdecimal() for value in numbers):
            raise UsageError(f"--sweep {text} is no axis", hint=f"like micro_batch=1,2,4; axes: {', '.join(AXES)}")
        axes[name] = tuple(int(value) for value in numbers)
    return axes


def sweep(
    shape: ModelShape, setup: TrainingSetup, axes: Mapping[str, tuple[int, ...]], device: Device, **how: Any
) -> Iterator[Cell]:
    """Recommend for each setup of the grid, in the axes' order; `how` is what `recommend` takes beside.

    Raises UsageError for a setup that cannot train for another reason than too long a sequence.
    """
    known = {field.name for field in fields(TrainingSetup)}
    for values in itertools.product(*axes.values()):
        changes = dict(zip(axes, values, strict=True))
        if not changes.keys() <= known:
            raise UsageError(f"no such field: {', '.join(changes.keys() - known)}")
        changed = replace(setup, **changes)  # type: ignore[arg-type]
        try:
            yield Cell(changed, recommend(shape, changed, device, **how))
        except SequenceTooLongError:
            yield Cell(changed, None)
