"""What a user asks of the benchmark, and what of it cannot be: all that is known before anything is built."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from ljperf.errors import UsageError
from ljperf.models.limits import check_sequence
from ljperf.models.shape import ModelShape
from ljperf.setup import FRAMEWORKS, Attention, Framework, Loss, Precision, TrainingSetup

DeviceKind = Literal["auto", "cpu", "cuda"]

DEFAULT_SEQUENCE = 2048


class UnknownFrameworkError(UsageError):
    """No framework of that name."""


class IndivisibleError(UsageError):
    """A batch, or a group of ZeRO's, that this number of ranks cannot share."""


@dataclass(frozen=True, slots=True)
class Request:
    """One run. What is None follows from the rest."""

    framework: Framework
    model: str
    micro_batch: int = 1
    sequence: int | None = None
    """None: 2048, or the model's maximum if that is less."""
    accumulation: int = 1
    global_batch: int | None = None
    """Sequences per optimizer step over all ranks; decides the accumulation."""
    zero: int | None = None
    """None: 3 for deepspeed; no DeepSpeed for hf."""
    precision: Precision = "bf16"
    compiled: bool = False
    backend: str = "inductor"
    recompute: str = "none"
    """none, full, auto, or a number of layers."""
    attention: Attention = "sdpa"
    loss: Loss = "plain"
    steps: int = 10
    warmup: int = 3
    seed: int = 0
    learning_rate: float = 1e-4
    device: DeviceKind = "auto"
    headroom: float | None = None
    tokens: Path | None = None
    trace: Path | None = None
    ds_config: Path | None = None


def target_of(text: str) -> tuple[Framework, str]:
    """Split FRAMEWORK/MODEL. Raises UnknownFrameworkError, or UsageError if it has no slash."""
    framework, slash, model = text.partition("/")
    if not slash or not model:
        raise UsageError(
            f"{text!r} is not FRAMEWORK/MODEL", hint=f"such as {FRAMEWORKS[0]}/{model or framework or 'tiny'}"
        )
    for known in FRAMEWORKS:
        if framework == known:
            return known, model
    close = get_close_matches(framework, FRAMEWORKS, n=1)
    hint = f"did you mean {close[0]}/{model}?" if close else f"there are: {', '.join(FRAMEWORKS)}"
    raise UnknownFrameworkError(f"no framework is called {framework!r}", hint=hint)


def uses_deepspeed(request: Request) -> bool:
    """Does DeepSpeed train: always, or under the Trainer when a ZeRO stage or a config is given."""
    return request.framework == "deepspeed" or (
        request.framework == "hf" and (request.zero is not None or request.ds_config is not None)
    )


def read_ds_config(path: Path | None) -> dict[str, Any]:
    """A DeepSpeed config; empty without a file. Raises UsageError if it cannot be read."""
    if path is None:
        return {}
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"no DeepSpeed config: {error}", location=str(path)) from None
    if not isinstance(config, dict):
        raise UsageError("a DeepSpeed config is a JSON object", location=str(path))
    return config


def setup_of(
    request: Request, shape: ModelShape, world_size: int, config: dict[str, Any] | None = None
) -> TrainingSetup:
    """The setup that the request means; `recompute auto` counts as none until a device is known.

    Raises UsageError for a sequence, a recompute count or a combination that cannot be, IndivisibleError for a batch.
    """
    config = config or {}
    request = _with_batch_of(request, config, world_size)
    zero = config.get("zero_optimization", {}) if isinstance(config.get("zero_optimization", {}), dict) else {}
    stage = zero.get("stage", 0) if config else (3 if request.zero is None else request.zero)
    _check(request, shape, world_size)
    _check_groups(zero, world_size, request)
    return TrainingSetup(
        framework=request.framework,
        world_size=world_size,
        micro_batch=request.micro_batch,
        sequence=sequence_of(request, shape),
        accumulation=request.accumulation,
        zero_stage=stage if uses_deepspeed(request) else 0,
        precision=request.precision,
        attention=request.attention,
        loss=request.loss,
        compiled=request.compiled,
        recompute_layers=layers_of(request, shape),
        zero_init=uses_deepspeed(request) and stage == 3,
        leaf_blocks=uses_deepspeed(request) and stage == 3 and request.compiled,
        reduce_bucket=_elements(zero, "reduce_bucket_size", shape.hidden * shape.hidden),
        prefetch_bucket=_elements(zero, "stage3_prefetch_bucket_size", shape.hidden * shape.hidden * 9 // 10),
        persistence_threshold=_elements(zero, "stage3_param_persistence_threshold", 10 * shape.hidden),
        sub_group=_elements(zero, "sub_group_size", 1_000_000_000),
    )


def sequence_of(request: Request, shape: ModelShape) -> int:
    """Tokens per sequence. Raises SequenceTooLongError beyond the model's maximum."""
    sequence = min(DEFAULT_SEQUENCE, shape.max_positions) if request.sequence is None else request.sequence
    check_sequence(shape, sequence)
    return sequence


def layers_of(request: Request, shape: ModelShape) -> int:
    """How many layers recompute; 0 for auto. Raises UsageError for anything but none, full, auto or 0 to all."""
    named = {"none": 0, "auto": 0, "full": shape.layers}
    if request.recompute in named:
        return named[request.recompute]
    if not request.recompute.isdecimal() or int(request.recompute) > shape.layers:
        message = f"--recompute {request.recompute}: {shape.name} has {shape.layers} layers"
        raise UsageError(message, hint=f"none, full, auto, or a number from 0 to {shape.layers}")
    return int(request.recompute)


def _check(request: Request, shape: ModelShape, world_size: int) -> None:
    if request.zero is not None and request.framework in ("fsdp", "ddp"):
        raise UsageError(
            f"--zero is DeepSpeed's; {request.framework} has no stages", hint="leave it out, or use deepspeed/"
        )
    if request.ds_config and request.framework in ("fsdp", "ddp"):
        raise UsageError(f"--ds-config is DeepSpeed's; {request.framework} reads none")
    if request.ds_config and request.zero is not None:
        raise UsageError("--zero and --ds-config both give the stage", hint="give one of them")
    for name in ("micro_batch", "accumulation", "steps"):
        if getattr(request, name) < 1:
            raise UsageError(f"--{name.replace('_', '-')} must be at least 1, not {getattr(request, name)}")
    if request.warmup < 0:
        raise UsageError(f"--warmup must be at least 0, not {request.warmup}")


def _with_batch_of(request: Request, config: dict[str, Any], world_size: int) -> Request:
    """Let the config's numbers decide where it has some; then a global batch decides the accumulation."""
    micro = _number(config, "train_micro_batch_size_per_gpu") or request.micro_batch
    fixed = _number(config, "gradient_accumulation_steps")
    total = request.global_batch or _number(config, "train_batch_size")
    accumulation = fixed or request.accumulation
    if total and not (fixed and config):
        accumulation = max(1, total // (micro * world_size))
    if total and total != micro * accumulation * world_size:
        parts = f"{micro} per rank × {accumulation} accumulated × {world_size} ranks"
        nearest = micro * accumulation * world_size
        message = f"a batch of {total} sequences cannot be shared: {parts} make {nearest}"
        raise IndivisibleError(message, hint=f"a multiple of {micro * world_size} can, such as {nearest}")
    return replace(request, micro_batch=micro, accumulation=accumulation)


def _check_groups(zero: dict[str, Any], world_size: int, request: Request) -> None:
    for key in ("zero_hpz_partition_size", "mics_shard_size"):
        size = zero.get(key)
        if isinstance(size, int) and size > 1 and world_size % size:
            message = f"{world_size} ranks cannot be divided into groups of {size} ({key})"
            where = f"{request.ds_config}: /zero_optimization/{key}"
            raise IndivisibleError(message, hint="take a divisor of the number of ranks", location=where)


def _number(config: dict[str, Any], key: str) -> int | None:
    value = config.get(key)
    return value if isinstance(value, int) and value > 0 else None


def _elements(zero: dict[str, Any], key: str, derived: int) -> int:
    value = zero.get(key)
    return int(value) if isinstance(value, (int, float)) else derived
