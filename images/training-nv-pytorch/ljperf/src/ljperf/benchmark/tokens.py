"""What is trained on: seeded random tokens, or the user's own. Each rank and step gets other ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ljperf.errors import UsageError
from ljperf.models.shape import ModelShape
from ljperf.setup import TrainingSetup

if TYPE_CHECKING:
    import torch


class BadTokensError(UsageError):
    """A file of tokens that this model cannot train on."""


def synthetic(shape: ModelShape, setup: TrainingSetup, seed: int, rank: int) -> Iterator[torch.Tensor]:
    """Endless batches [micro_batch, sequence] of int64, uniform over the vocabulary; same seed, same batches."""
    import torch

    generator = torch.Generator().manual_seed(seed * 1_000_003 + rank)
    while True:
        yield torch.randint(0, shape.vocab, (setup.micro_batch, setup.sequence), generator=generator)


def given(path: Path, shape: ModelShape, setup: TrainingSetup, rank: int) -> Iterator[torch.Tensor]:
    """Endless batches [micro_batch, sequence] of a file's tokens, dealt out to the ranks in turn; then from its start.

    Raises BadTokensError as `read` does, or if the file has not one sequence per rank.
    """
    tokens = read(path, shape.vocab)
    sequences = len(tokens) // setup.sequence
    if sequences < setup.world_size:
        message = f"{len(tokens)} tokens give {sequences} sequences of {setup.sequence}, for {setup.world_size} ranks"
        raise BadTokensError(message, hint="give more tokens, or a smaller --sequence", location=str(path))
    rows = tokens[: sequences * setup.sequence].view(sequences, setup.sequence)
    mine = rows[rank :: setup.world_size][: sequences // setup.world_size]
    return _turns(mine, setup.micro_batch)


def _turns(rows: torch.Tensor, count: int) -> Iterator[torch.Tensor]:
    start = 0
    while True:
        yield rows[[(start + step) % len(rows) for step in range(count)]]
        start = (start + count) % len(rows)


def read(path: Path, vocab: int) -> torch.Tensor:
    """One row of token ids (int64) from .npy, .bin/.u16 (little-endian uint16), .u32, or text with blanks between.

    Raises BadTokensError for an unreadable file, for none, or for an id outside of the vocabulary.
    """
    import torch

    try:
        tokens = _parsed(path)
    except (OSError, ValueError) as error:
        raise BadTokensError(f"no tokens: {error}", location=str(path)) from None
    if not tokens.numel():
        raise BadTokensError("it holds no tokens", location=str(path))
    wrong = torch.nonzero((tokens < 0) | (tokens >= vocab))
    if len(wrong):
        where = int(wrong[0])
        message = f"token {int(tokens[where])} at position {where} is outside of the vocabulary, 0 to {vocab - 1}"
        hint = f"{len(wrong)} of {len(tokens)} are: made with another tokenizer?"
        raise BadTokensError(message, hint=hint, location=str(path))
    return tokens


def _parsed(path: Path) -> torch.Tensor:
    import numpy
    import torch

    kinds = {".bin": "<u2", ".u16": "<u2", ".u32": "<u4"}
    if path.suffix == ".npy":
        array = numpy.load(path, allow_pickle=False).reshape(-1)
        if array.dtype.kind not in "iu":
            raise ValueError(f"its numbers are {array.dtype}, not integers")
    elif path.suffix in kinds:
        array = numpy.fromfile(path, dtype=kinds[path.suffix])
    else:
        array = numpy.array([int(word) for word in path.read_text(encoding="ascii").split()], dtype=numpy.int64)
    return torch.from_numpy(array.astype(numpy.int64))
