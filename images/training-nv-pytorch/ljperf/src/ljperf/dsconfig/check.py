"""All rules over one config."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ljperf.dsconfig.finding import Finding
from ljperf.dsconfig.keys import NEWEST, installed, parsed
from ljperf.dsconfig.reading import Reading, walk
from ljperf.dsconfig.rules import arguments as training_arguments
from ljperf.dsconfig.rules import autos, batch, names, precision, recomputing, sizes, stages

Rule = Callable[[Reading], Iterable[Finding]]

RULES: Final[tuple[Rule, ...]] = (
    names.names,
    names.scalars,
    stages.stage,
    stages.stage_3_keys,
    stages.offload,
    stages.deprecated,
    sizes.fixed_prefetch,
    sizes.auto_alone,
    sizes.default_reduce_bucket,
    batch.batch_sizes,
    precision.both,
    precision.auto_alone,
    precision.apex,
    autos.autos,
    recomputing.unread_section,
    training_arguments.mismatches,
)


def findings(
    config: Mapping[str, Any],
    *,
    transformers: bool,
    world_size: int | None = None,
    hidden: int | None = None,
    deepspeed_version: str | None = None,
    arguments: Mapping[str, Any] | None = None,
) -> tuple[Finding, ...]:
    """What is wrong or odd, errors first.

    `transformers`: Transformers or Accelerate fills "auto" in before DeepSpeed reads it. `hidden`: the model's width,
    to name sizes. `deepspeed_version`: None is the installed one, or the newest known. `arguments`: TrainingArguments.
    """
    reading = Reading(config, transformers, world_size, hidden, _version(deepspeed_version), arguments or {})
    found = [finding for rule in RULES for finding in rule(reading)]
    return tuple(sorted(found, key=lambda finding: finding.severity != "error"))


def _version(given: str | None) -> tuple[int, ...]:
    text = given or installed()
    return parsed(text) if text else NEWEST


def has_auto(config: Mapping[str, Any]) -> bool:
    """Is "auto" anywhere? Then it was written for Transformers or Accelerate."""
    return any(value == "auto" for _, value in walk(config))
