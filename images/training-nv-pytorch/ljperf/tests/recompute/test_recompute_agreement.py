"""One number for all ranks, which nobody can hang on."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from ljperf.recompute.agreement import agree
from torch.distributed import HashStore


def answers(numbers: list[int | None], ranks: int, patience_s: float = 5.0) -> list[tuple[int | None, bool]]:
    store = HashStore()
    store.set_timeout(timedelta(seconds=20))
    found: dict[int, tuple[int | None, bool]] = {}

    def ask(rank: int, k: int | None) -> None:
        found[rank] = agree(store, rank, ranks, "test", k, patience_s)

    threads = [threading.Thread(target=ask, args=item) for item in enumerate(numbers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return [found[rank] for rank in range(len(numbers))]


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [([2, 2], 2), ([0, 3, 1], 3), ([1, None], None), ([None, None], None), ([0], 0)],
)
def test_the_largest_number_counts_and_all_layers_more_than_any(
    numbers: list[int | None], expected: int | None
) -> None:
    assert answers(numbers, len(numbers)) == [(expected, True)] * len(numbers)


def test_a_rank_that_never_asks_leaves_all_to_recompute_and_nobody_hangs() -> None:
    assert answers([1, 2], ranks=3, patience_s=0.3) == [(None, False)] * 2


def test_one_that_comes_late_takes_what_the_others_settled_on() -> None:
    store = HashStore()
    assert agree(store, 0, 2, "late", 1, 0.1) == (None, False)
    assert agree(store, 1, 2, "late", 1, 0.1) == (None, False)
