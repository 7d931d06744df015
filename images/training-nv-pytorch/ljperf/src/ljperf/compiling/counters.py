"""How many graphs Dynamo made, and where it had to leave them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Graphs:
    """What Dynamo counted in this process since `reset`."""

    unique: int
    breaks: int
    reasons: tuple[str, ...] = ()
    """Of the breaks, the most frequent first."""


def graphs() -> Graphs:
    """Read Dynamo's counters."""
    from torch._dynamo.utils import counters

    breaks = counters["graph_break"]
    return Graphs(
        unique=int(counters["stats"]["unique_graphs"]),
        breaks=sum(breaks.values()),
        reasons=tuple(reason.splitlines()[0] for reason, _ in breaks.most_common()),
    )


def reset() -> None:
    """Count from zero; what is compiled stays so."""
    from torch._dynamo.utils import counters

    counters.clear()
