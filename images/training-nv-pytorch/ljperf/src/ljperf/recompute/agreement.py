"""One number for all ranks, without a collective: a rank that has no hook would never join one, and all would hang.

Each rank puts its number into the process group's store and counts itself. Who counts last knows all and writes the
largest; who has waited too long writes "all layers". The store keeps the first of such answers, and every rank takes
what is kept: ranks that never asked recompute all layers anyway.
"""

from __future__ import annotations

import time
from typing import Any, Protocol

ALL = "all"
PATIENCE_S = 60.0  # between the first and the last rank's first training forward
POLL_S = 0.02  # asking does not hold the store's lock, as waiting in it would


class Store(Protocol):
    """What is used of torch.distributed's stores."""

    def set(self, key: str, value: str) -> Any:
        """Write a key."""

    def get(self, key: str) -> bytes:
        """Read a key that is there."""

    def add(self, key: str, amount: int) -> int:
        """Count, and say the new count."""

    def check(self, keys: list[str]) -> bool:
        """Are they there?"""

    def compare_set(self, key: str, expected: str, desired: str) -> bytes:
        """Write if not there yet (`expected` ""), and read."""


def agree(
    store: Store, rank: int, ranks: int, name: str, k: int | None, patience_s: float = PATIENCE_S
) -> tuple[int | None, bool]:
    """The largest number of layers that any rank wants (None: all layers), and whether every rank was heard.

    The second is False on all ranks if one did not answer within `patience_s`.
    """
    store.set(f"{name}/{rank}", ALL if k is None else str(k))
    if store.add(f"{name}/count", 1) == ranks:
        store.compare_set(f"{name}/answer", "", largest(store, ranks, name))
    end = time.monotonic() + patience_s
    while not store.check([f"{name}/answer"]):
        if time.monotonic() > end:
            store.compare_set(f"{name}/answer", "", f"{ALL} unheard")
            break
        time.sleep(POLL_S)
    answer = store.get(f"{name}/answer").decode()
    return (None if answer.startswith(ALL) else int(answer)), not answer.endswith("unheard")


def largest(store: Store, ranks: int, name: str) -> str:
    """The largest of the numbers that all ranks have written."""
    wanted = [store.get(f"{name}/{rank}").decode() for rank in range(ranks)]
    return ALL if ALL in wanted else str(max(map(int, wanted)))
