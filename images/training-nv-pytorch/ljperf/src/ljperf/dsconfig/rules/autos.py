""" "auto": who fills it in, and what becomes of it where nobody does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ljperf.dsconfig.derived import SIZES
from ljperf.dsconfig.finding import Finding, error, pointer_of, warning
from ljperf.dsconfig.keys import sections
from ljperf.dsconfig.reading import ZERO, Reading, walk

# What Transformers' HfTrainerDeepSpeedConfig or Accelerate's DeepSpeedPlugin replaces.
FILLED: Final = {
    "train_batch_size",
    "train_micro_batch_size_per_gpu",
    "gradient_accumulation_steps",
    "gradient_clipping",
    "optimizer/params/lr",
    "optimizer/params/betas",
    "optimizer/params/eps",
    "optimizer/params/weight_decay",
    "scheduler/params/warmup_min_lr",
    "scheduler/params/warmup_max_lr",
    "scheduler/params/warmup_num_steps",
    "scheduler/params/total_num_steps",
    "fp16/enabled",
    "bf16/enabled",
    "amp/enabled",
    "amp/opt_level",
    *(f"{ZERO}/{name}" for name in SIZES),
}
# DeepSpeed's own "auto", or sections whose readers know the word.
OWN: Final = (
    "autotuning",
    "pipeline",
    "elasticity",
    "compile",
    "expert_parallel",
    "tensor_parallel",
    f"{ZERO}/zenflow",
)
ELSEWHERE: Final = {*(f"{ZERO}/{name}" for name in SIZES), "fp16/enabled", "bf16/enabled"}  # rules of their own


def autos(reading: Reading) -> Iterator[Finding]:
    """Every "auto" that reaches DeepSpeed as it is."""
    for path, value in walk(reading.config):
        name = "/".join(map(str, path))
        if value != "auto" or name.startswith(OWN):
            continue
        if (reading.transformers and name in FILLED) or (not reading.transformers and name in ELSEWHERE):
            continue
        yield _left(path, name, reading)


def _left(path: tuple[object, ...], name: str, reading: Reading) -> Finding:
    who = "Transformers does not fill this in" if reading.transformers else "without Transformers nobody fills it in"
    section = sections().get("/".join(map(str, path[:-1]))) if len(path) > 1 else None
    if section and section.refuses(reading.version):
        key = section.key(str(path[-1]))
        default = f" ({key.default})" if key and key.default is not None else ""
        return warning(pointer_of(*path), f'{who}: DeepSpeed drops "auto" and uses its default{default}')
    hint = f"write a value{'' if reading.transformers else ', or train through Transformers'}"
    return error(pointer_of(*path), f'{who}, and DeepSpeed fails on the text "auto"', hint)
