"""Numbers that TrainingArguments holds too: Transformers refuses to start where they differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ljperf.dsconfig.finding import Finding, error, pointer_of
from ljperf.dsconfig.reading import Reading

# Config -> TrainingArguments, as HfTrainerDeepSpeedConfig compares them.
SAME: Final = {
    ("train_micro_batch_size_per_gpu",): "per_device_train_batch_size",
    ("gradient_accumulation_steps",): "gradient_accumulation_steps",
    ("gradient_clipping",): "max_grad_norm",
    ("optimizer", "params", "lr"): "learning_rate",
    ("optimizer", "params", "eps"): "adam_epsilon",
    ("optimizer", "params", "weight_decay"): "weight_decay",
    ("scheduler", "params", "warmup_max_lr"): "learning_rate",
    ("scheduler", "params", "warmup_num_steps"): "warmup_steps",
    ("fp16", "enabled"): "fp16",
    ("bf16", "enabled"): "bf16",
}
DEFAULTS: Final[dict[str, Any]] = {
    "per_device_train_batch_size": 8,
    "gradient_accumulation_steps": 1,
    "adam_beta1": 0.9,
    "adam_beta2": 0.999,
}
HINT = 'write "auto" in the config, and the number once, in TrainingArguments'


def mismatches(reading: Reading) -> Iterator[Finding]:
    """Each pair that differs; nothing where the arguments are not known."""
    if not (reading.transformers and reading.arguments):
        return
    for path, name in SAME.items():
        if name in reading.arguments:
            yield from _pair(reading.config, path, name, reading.arguments[name])
    yield from _betas(reading)
    yield from _train_batch(reading)


def _pair(config: Mapping[str, Any], path: tuple[str, ...], name: str, argument: Any) -> Iterator[Finding]:
    written: Any = config
    for part in path:
        written = written.get(part) if isinstance(written, Mapping) else None
    if written is None or written == "auto" or written == argument:
        return
    yield error(pointer_of(*path), f"{written} here, but {name} is {argument}: Transformers refuses to start", HINT)


def _betas(reading: Reading) -> Iterator[Finding]:
    names = ("adam_beta1", "adam_beta2")
    if any(name in reading.arguments for name in names):
        betas = [reading.arguments.get(name, DEFAULTS[name]) for name in names]
        yield from _pair(reading.config, ("optimizer", "params", "betas"), " and ".join(names), betas)


def _train_batch(reading: Reading) -> Iterator[Finding]:
    names = ("per_device_train_batch_size", "gradient_accumulation_steps")
    if reading.data_parallel is None or not any(name in reading.arguments for name in names):
        return
    micro, steps = (reading.arguments.get(name, DEFAULTS[name]) for name in names)
    if isinstance(micro, int) and isinstance(steps, int):
        named = f"{micro} x {steps} x {reading.data_parallel} (batch per device x accumulation x ranks)"
        yield from _pair(reading.config, ("train_batch_size",), named, micro * steps * reading.data_parallel)
