"""The sizes that Transformers derives from the hidden size, and what DeepSpeed really uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ljperf.dsconfig.keys import default_of, sections
from ljperf.dsconfig.reading import ZERO, Reading
from ljperf.dsconfig.values import refusal

PREFETCH: Final = "stage3_prefetch_bucket_size"
REDUCE: Final = "reduce_bucket_size"
PERSISTENCE: Final = "stage3_param_persistence_threshold"
SIZES: Final = (REDUCE, PREFETCH, PERSISTENCE)


def derived(name: str, hidden: int) -> int:
    """What "auto" becomes in Transformers and Accelerate, in elements; HfTrainerDeepSpeedConfig's rules."""
    return {REDUCE: hidden * hidden, PREFETCH: int(0.9 * hidden * hidden), PERSISTENCE: 10 * hidden}[name]


@dataclass(frozen=True, slots=True)
class Effective:
    """One size: as written, and as used on either way; None where it is unknown or the value is refused."""

    name: str
    written: Any
    """None: the key is absent."""
    plain: int | None
    """DeepSpeed alone, in elements."""
    transformers: int | None
    """Under Transformers or Accelerate, in elements."""


def effective(config: Mapping[str, Any], hidden: int | None) -> tuple[Effective, ...]:
    """The sizes that decide ZeRO's buffers; prefetch and persistence only with stage 3."""
    reading = Reading(config, transformers=True)
    names = SIZES if reading.stage == 3 else (REDUCE,) if reading.stage else ()
    return tuple(_effective(name, reading.zero, hidden) for name in names)


def _effective(name: str, zero: Mapping[str, Any], hidden: int | None) -> Effective:
    written = written_as(zero, name)
    if written == "auto":
        return Effective(name, written, default_of(ZERO, name), derived(name, hidden) if hidden else None)
    used = used_by_deepspeed(zero, name)
    return Effective(name, written, used, used)


def written_as(zero: Mapping[str, Any], name: str) -> Any:
    """The value under the key or its second name; None if it is absent (or null)."""
    key = sections()[ZERO].key(name)
    return zero.get(name, zero.get(key.also) if key and key.also else None)


def used_by_deepspeed(zero: Mapping[str, Any], name: str) -> int | None:
    """What DeepSpeed uses when this reaches it: absent or "auto" is its own default; None if it refuses the value."""
    key = sections()[ZERO].key(name)
    present = key is not None and (name in zero or key.also in zero)
    written = written_as(zero, name)
    if key is None or not present or written == "auto":
        default: int | None = default_of(ZERO, name)
        return default
    return None if refusal(key, written) else int(float(written))
