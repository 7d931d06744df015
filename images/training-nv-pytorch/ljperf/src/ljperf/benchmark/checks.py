"""What other rooms say of a run before it begins: layers to recompute, what is odd in a DeepSpeed config."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ljperf.benchmark.place import Place
from ljperf.models.shape import ModelShape
from ljperf.setup import TrainingSetup

DEFAULT_HEADROOM = 0.05


def recommended(
    shape: ModelShape, setup: TrainingSetup, place: Place, headroom: float | None
) -> tuple[TrainingSetup, str]:
    """The setup with the fewest recomputed layers that fit this device, and a line that says why."""
    from ljperf.memory.recommend import recommend

    advice = recommend(shape, setup, _device(place), DEFAULT_HEADROOM if headroom is None else headroom)
    line = f"recompute auto: the first {advice.k} of {shape.layers} layers"
    return setup.recomputing(advice.k), line if advice.fits else f"{line}, and even so it may not fit: {advice.why}"


def _device(place: Place) -> Any:
    from ljperf.devices import Device, found

    known = found(place.local_rank) if place.kind == "cuda" else None
    if known:
        return known
    # On CPU a rank's share of the machine's memory plays the device's part.
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Device("cpu", memory // max(1, int(os.environ.get("LOCAL_WORLD_SIZE", "1"))), {})


def findings(given: Mapping[str, Any], complete: Mapping[str, Any], setup: TrainingSetup) -> list[str]:
    """What `ljperf check` says about the config that reaches DeepSpeed, a line each; sizes that we derived are ours."""
    from ljperf.dsconfig.check import findings as found

    chosen = given.get("zero_optimization", {})
    reaching = complete["zero_optimization"]
    zero = {key: value for key, value in reaching.items() if key in OURS or chosen.get(key, "auto") != "auto"}
    seen = {**complete, "zero_optimization": zero}
    lines = found(seen, transformers=setup.framework == "hf", world_size=setup.world_size)
    return [f"check: {line.severity} at {line.pointer or '/'}: {line.message}" for line in lines]


OURS = ("stage", "reduce_bucket_size")
