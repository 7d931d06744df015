"""A config with what decides how it is read: the rules' one argument."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ljperf.dsconfig.keys import NEWEST, Version
from ljperf.dsconfig.values import is_true, stage_of

ZERO = "zero_optimization"


@dataclass(frozen=True, slots=True)
class Reading:
    """How DeepSpeed, and before it perhaps Transformers, meets a config."""

    config: Mapping[str, Any]
    transformers: bool
    """Transformers (or Accelerate) fills "auto" in before DeepSpeed sees the config."""
    world_size: int | None = None
    hidden: int | None = None
    version: Version = NEWEST
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """What TrainingArguments got, by its names; empty if unknown."""

    @property
    def zero(self) -> Mapping[str, Any]:
        """The ZeRO section; empty if there is none, or if it is no section."""
        return self.section(ZERO)

    @property
    def stage(self) -> int:
        """The ZeRO stage that DeepSpeed will use (0 where it is missing or refused)."""
        written = self.config.get(ZERO)
        if isinstance(written, bool):
            return int(written)  # the format before sections: true is stage 1
        return stage_of(self.zero.get("stage", 0)) or 0

    def section(self, name: str) -> Mapping[str, Any]:
        """A section of the config; empty if there is none, or if it is no mapping."""
        value = self.config.get(name)
        return value if isinstance(value, Mapping) else {}

    def enabled(self, name: str) -> bool:
        """Does this section say `enabled`, in so many words?"""
        value = self.section(name).get("enabled", False)
        return value != "auto" and is_true(value)

    @property
    def data_parallel(self) -> int | None:
        """Ranks that see different samples; None if the world size is unknown or does not divide."""
        parts = self.model_parallel
        return self.world_size // parts if self.world_size and self.world_size % parts == 0 else None

    @property
    def model_parallel(self) -> int:
        """Ranks that share a sample: sequence times tensor parallelism."""
        sizes = (self.config.get("sequence_parallel_size"), self.section("tensor_parallel").get("autotp_size"))
        parts = 1
        for size in sizes:
            parts *= size if isinstance(size, int) and size > 1 else 1
        return parts


def walk(value: Any, path: tuple[object, ...] = ()) -> Iterator[tuple[tuple[object, ...], Any]]:
    """Every part of a config that is no mapping or list, with its path."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from walk(part, (*path, key))
    elif isinstance(value, list | tuple):
        for position, part in enumerate(value):
            yield from walk(part, (*path, position))
    else:
        yield path, value
