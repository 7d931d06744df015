"""How many graphs Dynamo made, and where it had to leave them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Graphs:
    """What Dynamo counted in this process since `reset`."""

    unique: int
    breaks: int
    reasons: Mapping[str, int] = field(default_factory=dict)
    """Of the breaks, and how often; the most frequent first."""


def graphs() -> Graphs:
    """Read Dynamo's counters."""
    from torch._dynamo.utils import counters

    breaks = counters["graph_break"]
    return Graphs(
        unique=int(counters["stats"]["unique_graphs"]),
        breaks=sum(breaks.values()),
        reasons={str(reason).splitlines()[0][:200]: count for reason, count in breaks.most_common()},
    )


def reset() -> None:
    """Count from zero; what is compiled stays so."""
    from torch._dynamo.utils import counters

    counters.clear()
