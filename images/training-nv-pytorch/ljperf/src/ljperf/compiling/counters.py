"""How many graphs Dynamo made, where it had to leave them, and how many kernels Inductor generated for them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Graphs:
    """What Dynamo and Inductor counted in this process since `reset`."""

    unique: int
    breaks: int
    kernels: int = 0
    """0 where graphs are only traced: a backend without code of its own, or no compiler."""
    reasons: Mapping[str, int] = field(default_factory=dict)
    """Of the breaks, and how often; the most frequent first."""


def graphs() -> Graphs:
    """Read their counters."""
    from torch._dynamo.utils import counters

    breaks = counters["graph_break"]
    return Graphs(
        unique=int(counters["stats"]["unique_graphs"]),
        breaks=sum(breaks.values()),
        kernels=_kernels(),
        reasons={str(reason).splitlines()[0][:200]: count for reason, count in breaks.most_common()},
    )


def reset() -> None:
    """Count from zero; what is compiled stays so."""
    from torch._dynamo.utils import counters

    counters.clear()
    if inductor := _metrics():
        inductor.generated_kernel_count = 0


def _kernels() -> int:
    return int(getattr(_metrics(), "generated_kernel_count", 0))


def _metrics() -> Any:
    """Inductor's own counts, if it was used at all; graphs from its cache bring theirs along."""
    return sys.modules.get("torch._inductor.metrics")
