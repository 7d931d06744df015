"""The hook under ZeRO-3 on two ranks, with Transformers' and with DeepSpeed's own checkpointing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ranks import run_ranks

PROGRAM = Path(__file__).with_name("deepspeed_training.py")
STEPS = 3


def train(*arguments: str, **environ: str) -> tuple[list[dict[str, Any]], str]:
    done = run_ranks(PROGRAM, 2, *arguments, env={"DS_ACCELERATOR": "cpu", **environ}, timeout_s=240)
    read = json.JSONDecoder().raw_decode  # two ranks may write on one line
    found = [read(text)[0] for text in done.stdout.split("FOUND ")[1:]]
    return sorted(found, key=lambda item: item["rank"]), done.stderr


@pytest.mark.slow
def test_the_first_layers_recompute_with_the_losses_of_none_at_all() -> None:
    some, said = train("hand", CHECKPOINT_OPTIMIZATION_LAYERS="2")
    assert [item["model"]["forwards"] for item in some] == [[2 * STEPS, 2 * STEPS, STEPS, STEPS]] * 2
    assert said.count("the first 2 of 4 layers recompute: CHECKPOINT_OPTIMIZATION_LAYERS") == 1
    # Two of four calls in each of two steps.
    assert [item["hand"]["calls"] for item in some] == [2 * (4 + 2)] * 2
    none, _ = train(TEST_RECOMPUTE="0")
    assert [item["model"]["losses"] for item in some] == [item["model"]["losses"] for item in none]


@pytest.mark.slow
def test_ranks_that_disagree_on_the_variable_recompute_all_layers_and_end() -> None:
    found, said = train(CHECKPOINT_OPTIMIZATION_LAYERS="1", CHECKPOINT_OPTIMIZATION_WAIT_S="1", TEST_ONLY_RANKS="1")
    assert [item["model"]["forwards"] for item in found] == [[2 * STEPS] * 4] * 2
    assert said.count("some ranks lack CHECKPOINT_OPTIMIZATION, or are late") == 1
