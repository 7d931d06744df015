from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from ljperf.benchmark.request import Request
from ljperf.benchmark.result import Machine, Measured, document, merged, read, text_of
from ljperf.benchmark.show import comparison, page_of
from ljperf.benchmark.show import text_of as table_of
from ljperf.errors import UsageError
from ljperf.models.catalog import model_named
from ljperf.setup import TrainingSetup

MEMORY = {"allocated": 2**30, "reserved": 2**31, "retries": 0, "host": 2**20}
GRAPHS = {"graphs": 1, "breaks": 0, "kernels": 3, "reasons": {}}
H100 = Machine("cuda", "NVIDIA H100 80GB HBM3", 989e12, {"torch": "2.13.0"})
CPU = Machine("cpu", "a CPU", None, {"torch": "2.13.0"})


def measured(**changes: Any) -> Measured:
    kept = {"seconds": (1.0, 1.0), "losses": (3.0, 2.0, 1.0), "memory": MEMORY, "compile": GRAPHS}
    return Measured(**{**kept, **changes})


def published(**changes: Any) -> dict[str, Any]:
    """Llama-3-8B as torchtitan published it: 8 H100, local batch 2, 8,192 tokens, 5,762 tokens/s per GPU."""
    setup = TrainingSetup("fsdp", world_size=8, micro_batch=2, sequence=8192)
    second = 2 * 8192 / 5762
    request = Request("fsdp", "llama3-8b", warmup=1, steps=2)
    seen = measured(seconds=(second, second))
    return document(request, model_named("llama3-8b"), setup, H100, seen, **changes)


def test_speed_and_utilisation_are_the_published_ones() -> None:
    result = published()
    assert result["tokens_per_second_per_device"] == pytest.approx(5762)
    assert result["tokens_per_second"] == pytest.approx(8 * 5762)
    assert result["mfu"] == pytest.approx(0.337, abs=0.001)  # 334 of 989 TFLOP/s
    assert result["hfu"] == result["mfu"]  # nothing is recomputed


def test_of_ranks_the_slowest_step_the_mean_loss_and_the_most_memory_count() -> None:
    one = measured(seconds=(1.0, 5.0), losses=(1.0, 2.0, 3.0))
    two = measured(seconds=(2.0, 4.0), losses=(3.0, 2.0, 5.0), memory={**MEMORY, "allocated": 2**33, "host": 1})
    found = merged([one, two])
    assert found.seconds == (2.0, 5.0)
    assert found.losses == (2.0, 2.0, 4.0)
    assert found.memory == {**MEMORY, "allocated": 2**33}


def test_memory_that_no_rank_knows_stays_unknown() -> None:
    none = {**MEMORY, "allocated": None}
    assert merged([measured(memory=none), measured(memory=none)]).memory["allocated"] is None


@pytest.mark.parametrize(
    ("graphs", "kernels", "word"),
    [(2, 5, "yes"), (2, 0, "traced only: no kernel was generated"), (0, 0, "asked for, but nothing was")],
)
def test_the_table_says_whether_kernels_came_of_compiling(graphs: int, kernels: int, word: str) -> None:
    result = published()
    result["setup"] = {**result["setup"], "compiled": True}
    result["compile"] = {**GRAPHS, "graphs": graphs, "kernels": kernels}
    assert ["compiled", *word.split()] in [line.split() for line in table_of(result).splitlines()]


def test_a_kept_result_is_read_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(text_of(published()), encoding="utf-8")
    assert read(tmp_path / "r.json") == published()


def test_json_has_no_nan_even_if_the_loss_is() -> None:
    result = document(
        Request("ddp", "tiny"),
        model_named("tiny"),
        TrainingSetup("ddp", sequence=64),
        CPU,
        measured(losses=(1.0, math.nan)),
        ended="diverged",
        failure="the loss is nan at step 2",
    )
    assert json.loads(text_of(result), parse_constant=pytest.fail)["loss"]["last"] == "nan"
    assert result["complete"] is False
    assert "nan" in table_of(result)


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 1}', '{"format": 99, "tokens_per_second": 1}'])
def test_other_files_are_no_results(tmp_path: Path, text: str) -> None:
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(UsageError, match="no result") as raised:
        read(tmp_path / "r.json")
    assert raised.value.location == str(tmp_path / "r.json")


def test_the_table_names_the_convention_of_mfu_and_the_setup() -> None:
    shown = table_of(published())
    assert "33.7%" in shown
    assert "without causal halving" in shown
    assert "8 × NVIDIA H100 80GB HBM3" in shown
    assert "1.00 GiB" in shown  # allocated


def test_on_a_cpu_the_table_says_why_there_is_no_mfu() -> None:
    shown = table_of(document(Request("ddp", "tiny"), model_named("tiny"), TrainingSetup("ddp"), CPU, measured()))
    assert "none on a CPU" in shown


def test_a_partial_result_is_marked_in_the_table() -> None:
    shown = table_of(published(ended="failed", failure="rank 1 was ended by SIGKILL"))
    assert shown.splitlines()[-1] == "NOT COMPLETE: rank 1 was ended by SIGKILL"


def test_a_comparison_shows_changes_and_what_else_differs() -> None:
    slow, fast = published(), published()
    fast["tokens_per_second"] = slow["tokens_per_second"] * 1.25
    fast["setup"] = {**slow["setup"], "compiled": True}
    shown = comparison(slow, fast)
    (speed,) = (line for line in shown.splitlines() if line.startswith("tokens/s  "))
    assert "+25.0%" in speed
    assert "differs: setup.compiled: False → True" in shown
    assert shown.count("differs:") == 1


def test_a_page_has_both_curves_and_the_table() -> None:
    shown = page_of(published())
    assert shown.count("<svg") == 2
    assert "NVIDIA H100" in shown
