"""train_batch_size = train_micro_batch_size_per_gpu x gradient_accumulation_steps x data-parallel ranks."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any, Final

from ljperf.dsconfig.finding import Finding, error, pointer_of, warning
from ljperf.dsconfig.reading import Reading

TRAIN: Final = "train_batch_size"
MICRO: Final = "train_micro_batch_size_per_gpu"
STEPS: Final = "gradient_accumulation_steps"
NAMES: Final = (TRAIN, MICRO, STEPS)


def batch_sizes(reading: Reading) -> Iterator[Finding]:
    """What DeepSpeed's own assertions say at start, and the sums that none of them makes."""
    wrong = [finding for name in NAMES for finding in _one(name, reading.config.get(name))]
    yield from wrong
    known = {name: value for name in NAMES if isinstance(value := reading.config.get(name), int)}
    open_ = any(reading.config.get(name) == "auto" for name in NAMES)
    if wrong or open_ or reading.section("elasticity").get("enabled"):
        return
    if TRAIN not in known and MICRO not in known:
        yield _neither(reading)
    elif known:
        yield from _sum(known, reading)


def _one(name: str, value: Any) -> Iterator[Finding]:
    """One of the three; "auto" is another rule's."""
    pointer = pointer_of(name)
    if value is None or value == "auto":
        return
    if isinstance(value, bool) or not isinstance(value, int):
        yield error(pointer, f"{name} must be a whole number, not {value!r}", _whole(value))
    elif value < 1:
        yield error(pointer, f"{name} must be 1 or more, not {value}")


def _whole(value: Any) -> str | None:
    return f"write {int(value)}" if isinstance(value, float) and value.is_integer() else None


def _neither(reading: Reading) -> Finding:
    hint = 'write "train_micro_batch_size_per_gpu": "auto"' if reading.transformers else f"give {MICRO}"
    return error("", f"neither {TRAIN} nor {MICRO} is given: DeepSpeed refuses to start", hint)


def _sum(known: dict[str, int], reading: Reading) -> Iterator[Finding]:
    ranks = reading.data_parallel
    if reading.world_size and ranks is None:
        parts = reading.model_parallel
        yield error("", f"{reading.world_size} ranks do not divide by {parts} (sequence and tensor parallelism)")
    elif TRAIN not in known:
        return  # DeepSpeed computes it
    elif ranks is None:
        yield from _any_ranks(known)
    else:
        yield from _with_ranks(known, ranks)


def _any_ranks(known: dict[str, int]) -> Iterator[Finding]:
    """Without a world size: is there any number of ranks that fits?"""
    per_rank = prod(known[name] for name in (MICRO, STEPS) if name in known)
    product = " x ".join(f"{name} {known[name]}" for name in (MICRO, STEPS) if name in known)
    if known[TRAIN] % per_rank:
        message = f"{known[TRAIN]} is no multiple of {product}: no number of ranks fits"
        yield error(pointer_of(TRAIN), message, f"a multiple of {per_rank}, or leave one of the three out")
    elif len(known) == len(NAMES):
        ranks = known[TRAIN] // per_rank
        message = (
            f"with {product} this starts on {ranks} data-parallel rank{'s' * (ranks != 1)}, and on no other number"
        )
        yield warning(pointer_of(TRAIN), message, f"leave {TRAIN} out, and DeepSpeed computes it")


def _with_ranks(known: dict[str, int], ranks: int) -> Iterator[Finding]:
    """What is missing is divided out, rounding down, then the product must be exact; as DeepSpeed does it."""
    train, micro, steps = known[TRAIN], known.get(MICRO), known.get(STEPS)
    if micro is None:
        micro = train // ranks // (steps or 1)
        steps = steps or 1
    elif steps is None:
        steps = train // micro // ranks
    if train == micro * steps * ranks:
        return
    message = f"{train} is not {micro} x {steps} x {ranks} = {micro * steps * ranks} ({MICRO} x {STEPS} x ranks)"
    yield error(pointer_of(TRAIN), message, f"leave {TRAIN} out, and DeepSpeed computes it")
