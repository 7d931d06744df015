from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy
import pytest
import torch
from ljperf.benchmark.tokens import BadTokensError, given, read, synthetic
from ljperf.models.catalog import model_named
from ljperf.setup import TrainingSetup

TINY = model_named("tiny")  # a vocabulary of 512


def first(batches: object, count: int) -> list[list[list[int]]]:
    return [batch.tolist() for batch in islice(batches, count)]  # type: ignore[call-overload]


def test_random_tokens_are_the_same_for_a_seed_and_others_for_each_rank() -> None:
    setup = TrainingSetup(micro_batch=2, sequence=8)
    assert first(synthetic(TINY, setup, 0, 0), 3) == first(synthetic(TINY, setup, 0, 0), 3)
    seen = [first(synthetic(TINY, setup, seed, rank), 1) for seed in (0, 1) for rank in (0, 1)]
    assert len({str(batch) for batch in seen}) == 4


def test_random_tokens_have_the_shape_and_stay_in_the_vocabulary() -> None:
    batch = next(synthetic(TINY, TrainingSetup(micro_batch=64, sequence=512), 0, 0))
    assert batch.shape == (64, 512)
    assert (int(batch.min()), int(batch.max())) == (0, 511)


def test_given_tokens_are_dealt_out_in_turn_and_begin_again(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text(" ".join(map(str, range(11))))  # five sequences of 2; one token is left over
    setup = TrainingSetup(world_size=2, micro_batch=1, sequence=2)
    assert first(given(path, TINY, setup, 0), 3) == [[[0, 1]], [[4, 5]], [[0, 1]]]
    assert first(given(path, TINY, setup, 1), 3) == [[[2, 3]], [[6, 7]], [[2, 3]]]


@pytest.mark.parametrize(
    ("name", "dtype"), [("t.bin", "<u2"), ("t.u32", "<u4"), ("t.npy", "int32"), ("t.npy", "uint16")]
)
def test_binary_tokens_are_read(tmp_path: Path, name: str, dtype: str) -> None:
    numbers = numpy.array([1, 300, 511], dtype=dtype)
    numpy.save(tmp_path / name, numbers) if name.endswith("npy") else numbers.tofile(tmp_path / name)
    tokens = read(tmp_path / name, 512)
    assert tokens.dtype == torch.int64
    assert tokens.tolist() == [1, 300, 511]


@pytest.mark.parametrize(
    ("text", "where"), [("1 2 512 3", "token 512 at position 2"), ("1 -1", "token -1 at position 1")]
)
def test_an_id_outside_of_the_vocabulary_is_named_with_its_place(tmp_path: Path, text: str, where: str) -> None:
    path = tmp_path / "t.txt"
    path.write_text(text)
    with pytest.raises(BadTokensError, match=where) as raised:
        read(path, 512)
    assert raised.value.location == str(path)


@pytest.mark.parametrize(
    ("text", "message"), [("", "no tokens"), ("1 two", "no tokens: invalid literal"), ("1.5", "no tokens")]
)
def test_a_file_without_tokens_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "t.txt"
    path.write_text(text)
    with pytest.raises(BadTokensError, match=message):
        read(path, 512)


def test_numbers_that_are_no_integers_are_refused(tmp_path: Path) -> None:
    numpy.save(tmp_path / "t.npy", numpy.array([0.5]))
    with pytest.raises(BadTokensError, match="float64, not integers"):
        read(tmp_path / "t.npy", 512)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadTokensError, match="No such file"):
        read(tmp_path / "none.txt", 512)


def test_fewer_sequences_than_ranks_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("1 2 3")
    with pytest.raises(BadTokensError, match="3 tokens give 1 sequences of 2, for 2 ranks"):
        given(path, TINY, TrainingSetup(world_size=2, sequence=2), 0)
